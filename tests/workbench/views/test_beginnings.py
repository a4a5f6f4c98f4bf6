"""Pages of an installation that holds little or nothing yet; no test here has a world."""

from django.test import Client

from tests.evolution.measured import make_harness


def test_home_says_how_to_begin_when_there_is_no_harness(viewer: Client) -> None:
    assert b"load_demonstration" in viewer.get("/").content


def test_a_harness_that_nobody_measured_has_a_page_all_the_same(operator: Client) -> None:
    answer = operator.get(f"/h/{make_harness().name}/releases/")

    assert "not measured" in answer.content.decode()
