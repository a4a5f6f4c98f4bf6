from datetime import timedelta

import pytest
from django.utils import timezone

from evolution.loop import shards, steps
from evolution.loop.shards import claim_shards
from evolution.models import Evaluation, EvaluationShard
from evolution.states import EvaluationState, ShardState, StepState
from evolution.tasks.evaluations import run_evaluation
from evolution.tasks.sweep import sweep
from tests.evolution.measured import (
    DEV,
    make_evaluation,
    make_harness,
    make_proposal,
    make_version,
    run,
    teach,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("run_tasks_at_once")]


@pytest.fixture(autouse=True)
def _database_is_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "grace", timedelta)


def test_shard_of_a_dead_worker_is_worked_on_and_the_evaluation_ends() -> None:
    evaluation = make_evaluation(make_harness())
    assert claim_shards(evaluation, 1, "dead")
    EvaluationShard.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
    sweep()
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.results.count()) == (EvaluationState.PARTIAL, 4)


def test_shard_whose_message_was_lost_is_sent_again() -> None:
    evaluation = make_evaluation(make_harness())
    sweep()
    assert evaluation.results.count() == 0
    Evaluation.objects.update(created_at=timezone.now() - timedelta(minutes=1))
    sweep()
    assert evaluation.results.count() == 4


def test_evaluation_that_nobody_ended_is_ended() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation)
    Evaluation.objects.update(state=EvaluationState.RUNNING)
    sweep()
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.FINISHED


def test_measured_step_that_nobody_settled_gets_its_verdict() -> None:
    harness = make_harness()
    make_version(harness)
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(1, 3))])
    for evaluation in steps.measure_step(DEV, step, model="m", judge_model="j"):
        run(evaluation)
    sweep()
    step.refresh_from_db()
    assert step.state == StepState.EVALUATED
    assert step.verdict is not None


def test_task_ends_at_once_when_the_shard_is_gone_or_done() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation)
    run_evaluation(evaluation.pk)
    run_evaluation(0)
    assert evaluation.shards.get().state == ShardState.DONE
    assert evaluation.results.count() == 4
