import re
import shutil

import pytest
from django.test import Client

from evolution.loop.repositories import open_repository
from evolution.models import CaseResult, Evaluation
from tests.workbench.views.conftest import World


def test_home_goes_to_the_first_agent(world: World, viewer: Client) -> None:
    assert viewer.get("/").headers["Location"] == world.url()


def test_the_board_plots_every_measured_version(world: World, viewer: Client) -> None:
    figure = viewer.get(world.url()).context["figure"]

    names = [trace["name"] for trace in figure["data"]]
    assert names == ["accuracy", "accuracy, not promoted", "effectiveness", "effectiveness, not promoted"]
    # The step waits for its decision, so the line does not lead to it.
    assert [trace["x"] for trace in figure["data"][:2]] == [["baseline"], ["step 1"]]
    assert [trace["y"][0] for trace in figure["data"][:2]] == pytest.approx([100 * 2 / 12, 100 * 10 / 12])


def test_versions_are_told_apart_by_latency_tokens_and_cost(world: World, viewer: Client) -> None:
    candidate = world.step.candidate_evaluation
    assert candidate is not None
    candidate.results.update(latency_ms=2000, prompt_tokens=1700, judge_prompt_tokens=300, cost=0.5)
    candidate.results.update(completion_tokens=45, judge_completion_tokens=5)
    slow = candidate.results.order_by("pk")[0]
    CaseResult.objects.filter(pk=slow.pk).update(latency_ms=20_000)

    page = viewer.get(world.url()).content.decode()
    row = page[page.index(f">#{candidate.pk}<") :].partition("</tr>")[0]
    shown = [text.strip() for text in re.findall(r">([^<>]*[^<>\s][^<>]*)<", row)]

    # Of twelve numbers, between the largest two: np.percentile([2] * 11 + [20], [95, 50, 99])
    assert shown[-4:] == ["10 s", "2.0 s · 18 s", "2\u202f000 + 50", "0.500 USD"]


def test_the_line_goes_through_what_was_promoted(world: World, operator: Client) -> None:
    operator.post(world.url("steps/1/decide/"), {"decision": "promote", "reason": "better"})

    data = operator.get(world.url()).context["figure"]["data"]

    assert [(trace["x"], trace["mode"]) for trace in data] == [(["baseline", "step 1"], "lines+markers")] * 2


def test_the_tiles_speak_of_the_live_version_after_a_roll_back(world: World, operator: Client) -> None:
    operator.post(world.url("steps/1/decide/"), {"decision": "promote", "reason": "better"})
    assert operator.get(world.url()).context["scores"].accuracy == pytest.approx(100 * 10 / 12)

    operator.post(world.url("releases/1/roll-back/"), {"reason": "prices were wrong"})

    context = operator.get(world.url()).context
    assert context["scores"].accuracy == pytest.approx(100 * 2 / 12)
    assert [shape["x0"] for shape in context["figure"]["layout"]["shapes"]] == ["baseline"]


def test_an_unmeasured_live_version_has_no_scores(world: World, viewer: Client) -> None:
    Evaluation.objects.filter(commit=world.step.base_commit).update(state="cancelled")

    answer = viewer.get(world.url())

    assert answer.context["scores"] is None
    assert "the live version is not measured" in answer.content.decode()


def test_the_board_hears_of_changes(world: World, viewer: Client, developer: Client) -> None:
    headers = {"HX-Request": "true", "HX-Target": "watch"}
    seen = viewer.get(world.url()).context["stamp"]
    before = viewer.get(world.url(), {"seen": seen}, headers=headers)

    developer.post(world.url("clusters/1/ignore/"), {"reason": "a test room"})
    after = viewer.get(world.url(), {"seen": seen}, headers=headers)

    assert (before.status_code, before.has_header("HX-Trigger")) == (204, False)
    assert "stale" in after.headers["HX-Trigger"]


def test_the_judge_is_shown_with_its_own_model(world: World, viewer: Client) -> None:
    assert viewer.get("/h/shop-judge/").context["model_in_use"] == "rehearsal-judge"


def test_waiting_proposals_are_told_apart(world: World, viewer: Client) -> None:
    texts = [item.text for item, _url in viewer.get(world.url()).context["waiting"]]

    assert f"Review: proposal {world.proposal.pk} of cluster 1, teach q3" in texts


def test_the_plot_has_a_gap_where_errors_leave_no_score(world: World, viewer: Client) -> None:
    evaluation = world.step.candidate_evaluation
    assert evaluation is not None
    evaluation.results.update(error_kind="policy_error", accuracy=None, effectiveness=None)

    figure = viewer.get(world.url()).context["figure"]

    values = [value for trace in figure["data"] for value in trace["y"]]
    assert (values.count(None), values.count(0)) == (2, 0)


def test_the_board_of_a_repository_that_is_gone_is_shown(world: World, viewer: Client) -> None:
    shutil.rmtree(open_repository(world.harness).path)

    assert viewer.get(world.url()).status_code == 200


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


def test_a_series_without_scores_is_a_table_and_no_empty_axis(world: World, viewer: Client) -> None:
    CaseResult.objects.update(accuracy=None, effectiveness=None, error_kind="policy_error")
    answer = viewer.get(world.url())

    assert answer.context["figure"] is None
    assert "No version has enough scores" in answer.content.decode()
