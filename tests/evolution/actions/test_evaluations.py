from collections.abc import Callable
from typing import Any

import pytest

from evolution.actions import evaluations
from evolution.actors import NotAllowed
from evolution.errors import LoopError
from evolution.loop.authors import author_of
from evolution.loop.evaluation import ENDED
from evolution.loop.repositories import open_repository
from evolution.models import Evaluation, Event, Harness
from evolution.states import EvaluationState, StepState
from tests.evolution.measured import DEV, VIEWER, make_harness, make_measured_step, make_version, teach

pytestmark = pytest.mark.django_db


def start() -> Evaluation:
    harness = make_harness()
    make_version(harness)
    return evaluations.start_evaluation(DEV, harness, "main")


def test_start_binds_commit_dataset_models_and_judge() -> None:
    evaluation = start()
    assert (evaluation.model, evaluation.judge_model) == ("rehearsal-policy", "rehearsal-judge")
    assert (len(evaluation.commit), len(evaluation.judge_commit)) == (40, 40)
    assert (evaluation.splits, evaluation.total, evaluation.created_by) == (["dev", "guard"], 4, "dev")


@pytest.mark.usefixtures("run_tasks_at_once")
def test_tasks_sent_on_commit_do_the_work(django_capture_on_commit_callbacks: Callable[..., object]) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        evaluation = start()
    evaluation.refresh_from_db()
    assert evaluation.state in ENDED
    assert evaluation.results.count() == 4


@pytest.mark.usefixtures("run_tasks_at_once")
def test_resume_sends_what_has_no_score(django_capture_on_commit_callbacks: Callable[..., object]) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        evaluation = start()
    Evaluation.objects.update(state=EvaluationState.PARTIAL)
    evaluation.results.filter(case__key="q2").update(error_kind="policy_error", accuracy=None)
    evaluation.refresh_from_db()
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        assert evaluations.resume_evaluation(DEV, evaluation) == 1
    assert evaluation.results.count() == 4


def test_cancel_keeps_the_evaluation() -> None:
    evaluation = start()
    evaluations.cancel_evaluation(DEV, evaluation)
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.CANCELLED


def test_step_waits_for_an_evaluation_that_is_resumed_and_is_ready_when_that_is_cancelled() -> None:
    step = make_measured_step(teach(1, 2, 3))
    evaluation = step.candidate_evaluation
    assert evaluation is not None
    Evaluation.objects.filter(pk=evaluation.pk).update(state=EvaluationState.PARTIAL)
    evaluation.refresh_from_db()
    evaluations.resume_evaluation(DEV, evaluation, enqueue=False)
    step.refresh_from_db()
    assert (step.state, step.verdict) == (StepState.EVALUATING, None)
    evaluations.cancel_evaluation(DEV, evaluation)
    step.refresh_from_db()
    assert step.state == StepState.READY


def test_viewer_may_do_none_of_it() -> None:
    evaluation = start()
    for refused in (
        lambda: evaluations.start_evaluation(VIEWER, evaluation.harness, "main"),
        lambda: evaluations.cancel_evaluation(VIEWER, evaluation),
        lambda: evaluations.resume_evaluation(VIEWER, evaluation),
    ):
        with pytest.raises(NotAllowed):
            refused()


@pytest.mark.usefixtures("run_tasks_at_once")
def test_judging_anew_is_work_for_developers_and_leaves_a_trace(
    django_capture_on_commit_callbacks: Callable[..., object],
) -> None:
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        evaluation = start()
    evaluation.refresh_from_db()
    with pytest.raises(NotAllowed):
        evaluations.rejudge_evaluation(VIEWER, evaluation)
    with django_capture_on_commit_callbacks(execute=True):  # type: ignore[attr-defined]
        made = evaluations.rejudge_evaluation(DEV, evaluation)
    made.refresh_from_db()
    assert (made.state in ENDED, made.results.count(), made.answers_from) == (True, 4, evaluation)
    assert Event.objects.filter(verb="evaluation.rejudged", target_id=made.pk).exists()


def teach_branch(harness: Harness) -> str:
    """A version beside main."""
    repository = open_repository(harness)
    return repository.commit(
        "proposal/1-x", {"prompts/role.md": teach(1, 2, 3)}, parent="main", author=author_of(DEV), message="x"
    )


def test_base_is_measured_beside_and_only_where_it_is_not() -> None:
    harness = make_harness()
    make_version(harness)
    commit = teach_branch(harness)
    candidate = evaluations.start_evaluation(DEV, harness, commit, base="main", repeats=2, concurrency=3)
    base = candidate.base
    assert base is not None
    assert (base.commit, base.repeats, base.concurrency) == (open_repository(harness).resolve("main"), 2, 3)
    assert evaluations.start_evaluation(DEV, harness, commit, base="main", repeats=2) == candidate
    assert Evaluation.objects.count() == 2
    # A version beside itself is the noise floor, if it is asked for.
    same = evaluations.start_evaluation(DEV, harness, "main", base="main", repeats=2)
    assert (same, same.base) == (base, None)
    fresh = evaluations.start_evaluation(DEV, harness, "main", base="main", repeats=2, is_fresh=True)
    assert (fresh.base, fresh.is_fresh) == (base, True)


def test_base_that_ended_with_errors_is_resumed() -> None:
    harness = make_harness()
    make_version(harness)
    base = evaluations.start_evaluation(DEV, harness, "main")
    Evaluation.objects.update(state=EvaluationState.PARTIAL)
    candidate = evaluations.start_evaluation(DEV, harness, teach_branch(harness), base="main")
    base.refresh_from_db()
    assert (candidate.base, base.state) == (base, EvaluationState.QUEUED)


@pytest.mark.parametrize(
    "odd",
    [{"concurrency": 0}, {"budget": {"calls": 0}}, {"budget": {"hours": 1}}, {"budget": {"tokens": 1.5}}],
)
def test_numbers_that_make_no_sense_are_refused(odd: dict[str, Any]) -> None:
    harness = make_harness()
    make_version(harness)
    with pytest.raises(LoopError):
        evaluations.start_evaluation(DEV, harness, "main", **odd)
    assert not Evaluation.objects.exists()


def test_resume_may_raise_the_budget() -> None:
    evaluation = start()
    Evaluation.objects.update(state=EvaluationState.PARTIAL, stopped_by="calls", budget={"calls": 1})
    evaluation.refresh_from_db()
    evaluations.resume_evaluation(DEV, evaluation, budget={"calls": 100})
    evaluation.refresh_from_db()
    assert (evaluation.budget, evaluation.stopped_by) == ({"calls": 100}, "")


def test_evaluation_that_had_no_budget_is_given_one_when_it_is_resumed() -> None:
    evaluation = start()
    evaluations.cancel_evaluation(DEV, evaluation)
    evaluations.resume_evaluation(DEV, evaluation, budget={"tokens": 5000})
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.budget) == (EvaluationState.QUEUED, {"tokens": 5000})


def test_budget_holds_for_the_candidate_and_as_much_for_the_base() -> None:
    harness = make_harness()
    make_version(harness)
    commit = teach_branch(harness)
    candidate = evaluations.start_evaluation(DEV, harness, commit, base="main", budget={"calls": 9})
    assert candidate.base is not None
    assert candidate.budget == candidate.base.budget == {"calls": 9}
