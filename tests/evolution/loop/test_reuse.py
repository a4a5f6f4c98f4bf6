from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone

from evolution.errors import LoopError
from evolution.loop.evaluation import cancel_evaluation
from evolution.loop.reuse import count_used
from evolution.models import BudgetHold, Evaluation, EvaluationUsage, Step
from evolution.states import EvaluationState, StepState
from tests.evolution.measured import (
    DEV,
    knows,
    make_evaluation,
    make_harness,
    make_measured_step,
    outage,
    run,
    teach,
)

pytestmark = pytest.mark.django_db


def make_partial(**fields: Any) -> Evaluation:
    """One that ended with an error for q2 after 5 calls that were answered and 2 that failed."""
    evaluation = make_evaluation(make_harness())
    run(evaluation, lambda system, user: (outage() if user == "q2" else knows)(system, user))
    spent = {"prompt_tokens": 400, "completion_tokens": 100, "cost": Decimal("0.25")}
    EvaluationUsage.objects.create(
        evaluation=evaluation, role="policy", model="m", made=5, failed=2, cached=9, **spent
    )
    Evaluation.objects.update(**fields)
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.PARTIAL
    return evaluation


def start(evaluation: Evaluation, **options: Any) -> Evaluation:
    """Ask for the same again, to go on with where that may be."""
    return make_evaluation(evaluation.harness, version=evaluation.dataset_version, resumes=True, **options)


def test_one_that_ended_on_its_budget_is_gone_on_with_under_the_one_that_is_asked_for_now() -> None:
    ended = make_partial(budget={"calls": 7}, stopped_by="calls", running_seconds=60.5)
    resumed = start(ended, budget={"calls": 100, "tokens": 1000, "seconds": 30})
    ended.refresh_from_db()
    assert resumed == ended
    assert (ended.state, ended.stopped_by) == (EvaluationState.QUEUED, "")
    # On top of what it had used.
    assert ended.budget == {"calls": 107, "tokens": 1500, "seconds": 90.5}


def test_without_a_budget_it_is_gone_on_with_under_none() -> None:
    ended = make_partial(budget={"calls": 7}, stopped_by="calls")
    assert start(ended) == ended
    ended.refresh_from_db()
    assert ended.budget == {}


def test_what_processes_that_are_gone_had_under_way_counts_as_used() -> None:
    ended = make_partial()
    BudgetHold.objects.create(
        evaluation=ended, holder="gone", role="judge", calls=3, tokens=50, money=1, lease_until=timezone.now()
    )
    assert count_used(ended) == {"calls": 10, "tokens": 550, "money": 1.25, "seconds": ended.running_seconds}


def test_one_that_was_cancelled_is_left_as_it_is() -> None:
    cancelled = make_evaluation(make_harness())
    cancel_evaluation(DEV, cancelled)
    made = start(cancelled)
    cancelled.refresh_from_db()
    assert (made != cancelled, cancelled.state) == (True, EvaluationState.CANCELLED)


def end_with_an_error(step: Step, state: StepState) -> Evaluation:
    """The step's candidate, in which a pair failed; the step is in that state by now."""
    evaluation = step.candidate_evaluation
    assert evaluation is not None
    evaluation.results.filter(case__key="q9").update(error_kind="judge_error", accuracy=None)
    Evaluation.objects.filter(pk=evaluation.pk).update(state=EvaluationState.PARTIAL)
    Step.objects.filter(pk=step.pk).update(state=state)
    return evaluation


@pytest.mark.parametrize(
    ("state", "is_resumed"),
    [(StepState.PROMOTED, False), (StepState.STOPPED, False), (StepState.EVALUATED, True)],
)
def test_errors_that_the_verdict_of_a_decided_step_rests_on_are_kept(
    state: StepState, *, is_resumed: bool
) -> None:
    ended = end_with_an_error(make_measured_step(teach(1, 2, 3)), state)
    made = make_evaluation(ended.harness, ended.commit, ended.dataset_version, resumes=True)
    assert (made == ended) == is_resumed
    assert ended.results.filter(error_kind="judge_error").exists() != is_resumed


@pytest.mark.parametrize("budget", [{"calls": 8}, {"calls": 9, "tokens": 10}, {"seconds": 9}])
def test_another_budget_than_that_of_what_is_under_way_is_refused(budget: dict[str, Any]) -> None:
    under_way = make_evaluation(make_harness(), budget={"calls": 9})
    with pytest.raises(LoopError, match=rf"evaluation {under_way.pk} measures the same.*\(calls: 9\)"):
        start(under_way, budget=budget)
    assert start(under_way, budget={"calls": 9}) == start(under_way) == under_way


def test_budget_is_no_matter_once_everything_is_measured() -> None:
    finished = make_evaluation(make_harness())
    with pytest.raises(LoopError, match=r"\(none\)"):
        start(finished, budget={"calls": 1})
    run(finished)
    assert start(finished, budget={"calls": 1}) == finished
