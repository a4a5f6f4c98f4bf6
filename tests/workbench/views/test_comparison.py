from django.test import Client

from evolution.models import CaseResult
from tests.workbench.views.conftest import World


def address(world: World, extra: str = "") -> str:
    step = world.step
    return world.url(
        f"comparison/?base={step.base_evaluation_id}&candidate={step.candidate_evaluation_id}{extra}"
    )


def test_flipped_cases_come_first(world: World, viewer: Client) -> None:
    page = viewer.get(address(world)).context["page"]

    assert [row.flip for row in page][:8] == ["fixed"] * 8


def test_a_filter_keeps_one_flip(world: World, viewer: Client) -> None:
    page = viewer.get(address(world, "&flip=still_passing")).context["page"]

    assert [row.key for row in page] == ["q1", "q2"]


def test_two_evaluations_that_differ_in_more_say_so(world: World, viewer: Client) -> None:
    assert world.step.base_evaluation is not None
    world.step.base_evaluation.model = "another"
    world.step.base_evaluation.save()

    assert "not comparable" in viewer.get(address(world)).content.decode()


def test_a_case_side_by_side_marks_the_words_that_changed(world: World, viewer: Client) -> None:
    before, after = CaseResult.objects.filter(case__key="q5").order_by("evaluation_id")
    CaseResult.objects.filter(pk=before.pk).update(reply="券后价89元哈", reasons={"accuracy": "stale price"})
    CaseResult.objects.filter(pk=after.pk).update(reply="券后价79元哈")

    page = viewer.get(address(world, f"&case={before.case_id}")).content.decode()

    assert "券后价<del>89</del>元哈" in page
    assert "券后价<ins>79</ins>元哈" in page
    assert "stale price" in page


def test_a_case_that_is_not_there_is_no_error(world: World, viewer: Client) -> None:
    assert viewer.get(address(world, "&case=999999")).status_code == 200
