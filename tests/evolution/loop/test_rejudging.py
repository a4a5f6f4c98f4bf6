import json
from typing import Any

import pytest

from evolution.errors import LoopError
from evolution.loop.authors import author_of
from evolution.loop.batches import work_batch
from evolution.loop.evaluation import build_scorer
from evolution.loop.regressions import weigh
from evolution.loop.rejudging import create_rejudgement
from evolution.loop.repositories import open_repository
from evolution.loop.verdict import Policy
from evolution.models import Evaluation
from evolution.ports import NamedModel
from harness_repo.git.errors import HarnessRepoError
from tests.evolution.measured import (
    DEV,
    JUDGE,
    FakeModel,
    knows,
    make_evaluation,
    make_harness,
    outage,
    run,
)

pytestmark = pytest.mark.django_db


def generous(_system: str, _user: str) -> str:
    return json.dumps({"accuracy": 1, "effectiveness": 1})


def change_judge(evaluation: Evaluation) -> str:
    """Another version of the judge, on a branch."""
    assert evaluation.harness.judge is not None
    repository = open_repository(evaluation.harness.judge)
    parent = repository.resolve("main")
    files = {"prompts/role.md": JUDGE["prompts/role.md"] + b"be generous\n"}
    return repository.commit("generous", files, parent=parent, author=author_of(DEV), message="generous")


def rejudge(evaluation: Evaluation, ref: str = "main", **options: Any) -> Evaluation:
    return create_rejudgement(DEV, evaluation, ref, judge_model="j", **options)


def perform(evaluation: Evaluation, judge: Any = generous) -> FakeModel:
    """Work on it with no model that could play the agent."""
    model = FakeModel(judge)
    work_batch([evaluation], lambda _: build_scorer(evaluation, None, NamedModel(model, "j")))
    evaluation.refresh_from_db()
    return model


@pytest.fixture
def measured() -> Evaluation:
    evaluation = make_evaluation(make_harness())
    run(evaluation)
    evaluation.refresh_from_db()
    return evaluation


def test_answers_are_scored_anew_and_the_agent_is_not_asked(measured: Evaluation) -> None:
    commit = change_judge(measured)
    made = rejudge(measured, "generous")
    judge = perform(made)
    assert (made.answers_from, made.judge_commit, made.state) == (measured, commit, "finished")
    assert len(judge.asked) == 4
    before = dict(measured.results.values_list("case__key", "reply"))
    assert dict(made.results.values_list("case__key", "reply")) == before
    assert set(made.results.values_list("accuracy", flat=True)) == {1}
    assert set(measured.results.values_list("accuracy", flat=True)) == {0, 1}


def test_what_the_agents_run_took_stays_and_counts_as_kept(measured: Evaluation) -> None:
    made = rejudge(measured)
    perform(made)
    old, new = measured.results.get(case__key="q1"), made.results.get(case__key="q1")
    assert (new.prompt_tokens, new.latency_ms, new.call_ms) == (10, old.latency_ms, [7])
    assert (old.calls, old.calls_cached, new.calls, new.calls_cached) == (2, 0, 2, 1)


def test_failures_of_the_agent_stay_what_they_are_and_those_of_the_judge_are_tried() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation, knows, outage())
    evaluation.results.filter(case__key="q2").update(
        error_kind="policy_error", error="was down", trajectory={"status": "model_error"}
    )
    evaluation.results.filter(case__key="q3").update(error_kind="worker_lost", error="gone", trajectory={})
    evaluation.results.filter(case__key="q4").delete()
    evaluation.refresh_from_db()
    made = rejudge(evaluation)
    judge = perform(made)
    found = dict(made.results.values_list("case__key", "error_kind"))
    assert found == {"q1": "", "q2": "policy_error", "q3": "worker_lost", "q4": "not_started"}
    assert len(judge.asked) == 1
    assert made.results.get(case__key="q2").error == "was down"


def test_answer_whose_judge_had_no_budget_left_is_judged_and_one_without_answer_is_not(
    measured: Evaluation,
) -> None:
    spent = {"error_kind": "budget", "error": "spent", "accuracy": None, "effectiveness": None}
    measured.results.filter(case__key="q1").update(**spent)
    measured.results.filter(case__key="q2").update(**spent, trajectory={"status": "model_error"})
    measured.results.filter(case__key="q3").update(**spent, trajectory={})
    made = rejudge(measured)
    perform(made)
    found = dict(made.results.values_list("case__key", "error_kind"))
    assert found == {"q1": "", "q2": "budget", "q3": "budget", "q4": ""}


def test_results_made_elsewhere_are_judged_by_what_there_is_of_them(measured: Evaluation) -> None:
    measured.results.filter(case__key="q1").update(trajectory={}, reply="from elsewhere")
    measured.results.filter(case__key="q2").update(trajectory={"status": "odd"})
    made = rejudge(measured)
    perform(made)
    assert made.results.get(case__key="q1").reply == "from elsewhere"
    assert made.results.get(case__key="q2").error_kind == "case_error"


def test_same_judgement_is_not_made_twice_unless_asked_anew(measured: Evaluation) -> None:
    first = rejudge(measured)
    assert rejudge(measured) == first
    perform(first)
    assert rejudge(measured) == first
    assert rejudge(measured, is_fresh=True) != first
    change_judge(measured)
    other = rejudge(first, "generous")
    assert (other != first, other.answers_from) == (True, measured)


def test_judging_anew_keeps_a_budget(measured: Evaluation) -> None:
    made = rejudge(measured, budget={"calls": 3})
    assert made.budget == {"calls": 3}
    with pytest.raises(LoopError, match="measures the same"):
        rejudge(measured, budget={"calls": 4})
    with pytest.raises(LoopError, match="above 0"):
        rejudge(measured, budget={"calls": 0}, is_fresh=True)
    assert rejudge(measured) == made


def test_evaluation_under_way_and_unknown_judges_are_refused(measured: Evaluation) -> None:
    with pytest.raises(HarnessRepoError):
        rejudge(measured, "nowhere")
    Evaluation.objects.update(state="running")
    measured.refresh_from_db()
    with pytest.raises(LoopError, match="not ended"):
        rejudge(measured)
    assert Evaluation.objects.count() == 1


def test_answers_that_are_being_given_anew_are_not_judged_by_way_of_a_judgement(measured: Evaluation) -> None:
    judged = rejudge(measured)
    perform(judged)
    Evaluation.objects.filter(pk=measured.pk).update(state="running")
    judged = Evaluation.objects.get(pk=judged.pk)
    with pytest.raises(LoopError, match=f"evaluation {measured.pk} has not ended"):
        rejudge(judged, is_fresh=True)


def test_scores_of_another_judge_are_not_compared_with_the_first(measured: Evaluation) -> None:
    change_judge(measured)
    made = rejudge(measured, "generous")
    perform(made)
    assert weigh(measured, made, Policy()).outcome == "inconclusive"
