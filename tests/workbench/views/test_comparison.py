import pytest
from django.test import Client

from evolution.models import CaseResult, DatasetCase, Evaluation
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


def test_scores_stand_side_by_side_with_their_difference(world: World, viewer: Client) -> None:
    before, after = world.step.base_evaluation, world.step.candidate_evaluation
    assert before is not None
    assert after is not None
    before.results.update(cost="0.5", latency_ms=100)
    after.results.update(cost="0.75", latency_ms=350)
    Evaluation.objects.filter(pk=before.pk).update(model="model-<b>")

    page = viewer.get(address(world)).content.decode()
    figures = page.partition("figures-title")[2].partition("</section>")[0]

    assert world.step.verdict is not None
    stored = world.step.verdict.figures["metrics"]["accuracy"]
    interval = f"{100 * stored['low']:+.1f} … {100 * stored['high']:+.1f}"
    for shown in ("model-&lt;b&gt;", "16.7", "83.3", "+66.7", interval, "0.500 USD", "0.750 USD", "+250 ms"):
        assert shown in figures


def test_results_made_elsewhere_say_what_they_are_of(world: World, viewer: Client) -> None:
    candidate = world.step.candidate_evaluation
    assert candidate is not None
    candidate.commit, candidate.model, candidate.currency = "", "gpt-<i>", "EUR"
    candidate.origin = {"format": "tau2-bench", "file": "runs.json", "problems": []}
    candidate.save()

    for extra in ("", f"&case={candidate.results.all()[0].case_id}"):
        page = viewer.get(address(world, extra)).content.decode()
        for shown in ("unknown version", "tau2-bench", "gpt-&lt;i&gt;"):
            assert shown in page


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


@pytest.mark.parametrize("number", ["²", "9" * 5000, "9" * 18, "-1"])
def test_what_is_no_number_is_no_error(world: World, viewer: Client, number: str) -> None:
    pair = [f"&case={number}", f"&case=1&repeat={number}", f"&page={number}"]

    statuses = {viewer.get(address(world, extra)).status_code for extra in pair}
    statuses.add(viewer.get(world.url(f"comparison/?base={number}")).status_code)
    assert statuses <= {200, 404}


def test_the_flipped_cases_are_what_it_opens_with(world: World, viewer: Client) -> None:
    answer = viewer.get(address(world))

    assert {row.flip for row in answer.context["page"]} == {"fixed"}
    assert len(viewer.get(address(world, "&flip=all")).context["page"]) == 12
    # The first danmaku of the made-up cases is their key.
    assert [row.text for row in answer.context["page"]] == [row.key for row in answer.context["page"]]


def test_side_by_side_walks_the_filtered_cases_and_leads_back(world: World, viewer: Client) -> None:
    rows = viewer.get(address(world)).context["page"].object_list
    answer = viewer.get(address(world, f"&case={rows[1].case_id}"))

    around = answer.context
    assert (around["previous"], around["next"]) == (rows[0].case_id, rows[2].case_id)
    assert world.url("steps/1/") in answer.content.decode()


@pytest.mark.parametrize("query", ["?base={0}&candidate={0}", "?base={0}", "?compare=1"])
def test_a_choice_of_one_or_none_is_said_to_be_none(world: World, viewer: Client, query: str) -> None:
    answer = viewer.get(world.url(f"comparison/{query.format(world.step.base_evaluation_id)}"))

    chosen = [pk for _name, _label, pk in answer.context["pickers"]]
    assert "Choose two different evaluations" in answer.content.decode()
    assert len(set(chosen)) == 2


def test_conversations_and_faults_stand_side_by_side(world: World, viewer: Client) -> None:
    before, after = CaseResult.objects.filter(case__key="q5").order_by("evaluation_id")
    DatasetCase.objects.filter(pk=before.case_id).update(
        request={"user": {"persona": "brisk <b>", "goal": "learn the price", "turns": 4}},
        faults=[{"kind": "malformed", "tool": "price"}],
    )
    said = {"user": "How much <i>?", "status": "ok"}
    call = {"turn": 1, "id": "", "name": "price", "error": "timeout: 5 s", "fault": "timeout"}
    for result, reply in ((before, "It is 89 yuan"), (after, "It is 79 yuan")):
        trajectory = {"status": "ok", "conversation": [{**said, "reply": reply}], "tool_calls": [call, call]}
        CaseResult.objects.filter(pk=result.pk).update(trajectory=trajectory)
    Evaluation.objects.filter(pk=after.evaluation_id).update(
        faults=[{"kind": "timeout", "tool": "*", "rate": 0.5}]
    )

    page = viewer.get(address(world, f"&case={before.case_id}")).content.decode()

    for shown in (
        "brisk &lt;b&gt;", "learn the price", "malformed:price:1", "timeout:*:0.5", "timeout · price × 2",
        "It is <del>89</del> yuan", "It is <ins>79</ins> yuan",
    ):  # fmt: skip
        assert shown in page
    assert page.count("How much &lt;i&gt;?") == 2
