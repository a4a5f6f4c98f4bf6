import shutil
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.utils import timezone
from pytest_django import Settings

from evolution.actions.clusters import start_clustering
from evolution.loop import repositories
from evolution.loop.batches import MOST_FAILED_STARTS
from evolution.loop.repositories import open_repository
from evolution.loop.shards import claim_shards
from evolution.models import EvaluationShard, Job
from evolution.states import EvaluationState
from evolution.tasks import evaluations as tasks
from evolution.tasks.evaluations import run_evaluation
from tests.evolution.measured import DEV, make_evaluation, make_harness
from workbench.celery import app

pytestmark = pytest.mark.django_db


@pytest.mark.usefixtures("run_tasks_at_once")
def test_deleted_repository_is_said_on_the_results(settings: Settings) -> None:
    settings.LLM_BASE_URL = "http://127.0.0.1:9/v1"
    harness = make_harness()
    evaluation = make_evaluation(harness)
    repositories._read_version.cache_clear()
    shutil.rmtree(open_repository(harness).path)
    run_evaluation(evaluation.pk)
    evaluation.refresh_from_db()
    kinds = set(evaluation.results.values_list("error_kind", "error"))
    assert (evaluation.state, len(kinds)) == (EvaluationState.PARTIAL, 1)
    kind, error = kinds.pop()
    assert kind == "not_started"
    assert "repository" in error


@pytest.mark.usefixtures("run_tasks_at_once")
def test_model_that_the_settings_have_no_more_is_said_on_the_results() -> None:
    """Measured by another model, the results would stand under a name that never gave them."""
    evaluation = make_evaluation(make_harness())
    run_evaluation(evaluation.pk)
    assert set(evaluation.results.values_list("error_kind", flat=True)) == {"not_started"}
    assert "m is not configured for the policy any more" in evaluation.results.all()[0].error


def test_worker_that_cannot_start_it_leaves_it_to_another_and_says_so_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    evaluation = make_evaluation(make_harness())
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(run_evaluation, "apply_async", lambda values, **_: sent.append(values))
    for failed in range(MOST_FAILED_STARTS):
        run_evaluation(evaluation.pk, failed)
    assert sent == [(evaluation.pk, failed + 1) for failed in range(MOST_FAILED_STARTS)]
    assert evaluation.results.count() == 0
    claim_shards(evaluation, 1, "other")
    EvaluationShard.objects.create(evaluation=evaluation, number=9, pairs=[])
    run_evaluation(evaluation.pk, MOST_FAILED_STARTS)
    # Another worker is at it, and goes on.
    assert evaluation.results.count() == 0
    evaluation.shards.update(state="queued", holder="", lease_until=None)
    run_evaluation(evaluation.pk, MOST_FAILED_STARTS)
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.results.count()) == (EvaluationState.PARTIAL, 4)


def test_person_who_waits_for_a_worker_is_seen_and_an_old_job_is_not() -> None:
    harness = make_harness()
    assert not tasks._has_waiting_job()
    job = start_clustering(DEV, harness)
    # It may have been taken in a moment.
    assert not tasks._has_waiting_job()
    for seconds, is_waiting in ((5, True), (600, False)):
        Job.objects.update(created_at=timezone.now() - timedelta(seconds=seconds))
        assert tasks._has_waiting_job() is is_waiting
    Job.objects.filter(pk=job.pk).update(state="running", created_at=timezone.now() - timedelta(seconds=5))
    assert not tasks._has_waiting_job()


def test_evaluations_have_a_queue_of_their_own_behind_that_of_people() -> None:
    assert app.amqp.router.route({}, "evolution.run_evaluation")["queue"].name == "evaluations"
    assert app.amqp.router.route({}, "evolution.run_job")["queue"].name == "workbench"
    assert list(app.amqp.queues.consume_from) == ["workbench", "evaluations"]
    assert django_settings.CELERY_BROKER_TRANSPORT_OPTIONS["queue_order_strategy"] == "priority"
