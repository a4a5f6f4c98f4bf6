from collections.abc import Callable

import pytest

from evolution.actions import evaluations
from evolution.actors import NotAllowed
from evolution.loop.evaluation import ENDED
from evolution.models import Evaluation
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
