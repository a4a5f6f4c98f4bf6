import pytest
from django.test import Client

from tests.workbench.views.conftest import World


def test_home_goes_to_the_first_agent(world: World, viewer: Client) -> None:
    assert viewer.get("/").headers["Location"] == world.url()


def test_home_says_how_to_begin_when_there_is_no_harness(viewer: Client) -> None:
    assert b"load_demonstration" in viewer.get("/").content


def test_the_board_plots_every_measured_version(world: World, viewer: Client) -> None:
    figure = viewer.get(world.url()).context["figure"]

    names = [trace["name"] for trace in figure["data"]]
    assert names == ["accuracy", "effectiveness"]
    assert figure["data"][0]["x"] == ["baseline", "step 1"]
    assert figure["data"][0]["y"] == pytest.approx([100 * 2 / 12, 100 * 10 / 12])


def test_the_board_leads_to_the_next_action(world: World, viewer: Client) -> None:
    answer = viewer.get(world.url())

    assert answer.context["next_url"] == world.url("steps/1/")
    assert (f'href="{world.url("steps/1/")}"') in answer.content.decode()


def test_the_board_says_that_a_rehearsal_model_is_in_use(world: World, viewer: Client) -> None:
    assert "rehearsal model" in viewer.get(world.url()).content.decode()


def test_no_page_runs_a_script_of_its_own(world: World, viewer: Client) -> None:
    page = viewer.get(world.url()).content.decode()

    inline = page.count("<script") - page.count("<script src=") - page.count('type="application/json"')
    assert inline == 0
    assert "onclick" not in page
