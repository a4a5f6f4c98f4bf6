"""Clustering, diagnosis and drafts by Celery: claims the job's row, builds the adapters, calls the loop."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from celery import shared_task
from django.db import connection

from evolution.actors import Actor, Role
from evolution.adapters import chat
from evolution.adapters.chat import build_model, configured_endpoints
from evolution.adapters.clustering import build_clusterer
from evolution.adapters.embedding import shared_embedder
from evolution.adapters.model_choice import check_model
from evolution.errors import LoopError, StaleState
from evolution.loop.cluster_naming import name_with_model
from evolution.loop.clusters import cluster_failures
from evolution.loop.diagnosis import diagnose_cluster
from evolution.loop.jobs import beat_job, claim_job, fail_job, finish_job, job_progress, requeue_lost_jobs
from evolution.loop.proposals import draft_proposal, fail_abandoned_drafts, fail_draft
from evolution.models import Cluster, Job, Proposal
from evolution.ports import NamedModel
from evolution.states import JobKind
from evolution.tasks.assigning import assign_new
from evolution.tasks.branches import fetch_asked, push_asked
from evolution.tasks.imports import import_staged
from evolution.tasks.sending import send_on_commit

logger = logging.getLogger(__name__)

# Seconds between two heartbeats; well below loop.jobs.SILENCE.
HEARTBEAT = 10.0


@shared_task(name="evolution.run_job")
def run_job(job_id: int) -> None:
    """Run a queued job to its end; a job that is gone, taken or ended is left alone."""
    perform_job(job_id)


def perform_job(job_id: int) -> None:
    """Do what `run_job` does, in this process; commands use it."""
    job = claim_job(job_id)
    if job is None:
        return
    with _heartbeat(job):
        try:
            result, message = _WORK[JobKind(job.kind)](job)
            finish_job(job, result, message)
        except StaleState as error:
            logger.warning("%s: %s", job, error)
            _fail(job, str(error))
        except LoopError as error:
            _fail(job, str(error))
        except Exception as error:
            logger.exception("%s failed", job)
            _fail(job, f"{type(error).__name__}: {error}")


def enqueue_job(job: Job) -> None:
    """Send the job's task once the transaction is committed."""
    send_on_commit(partial(run_job.delay, job.pk))


def resume_lost_jobs() -> None:
    """Take over jobs whose worker is gone, and send lost messages again; called by the sweep."""
    for job_id in requeue_lost_jobs():
        run_job.delay(job_id)
    fail_abandoned_drafts()


def _fail(job: Job, reason: str) -> None:
    """End the job, unless another worker has, and the draft that it was about."""
    try:
        fail_job(job, reason)
    except LoopError:
        return
    if job.kind == JobKind.DRAFT:
        fail_draft(_proposal(job), reason)


@contextmanager
def _heartbeat(job: Job) -> Iterator[None]:
    """Beat in a thread: a model's answer can take longer than the silence that is allowed."""
    ended = threading.Event()

    def beat() -> None:
        try:
            while not ended.wait(HEARTBEAT):
                beat_job(job.pk)
        finally:
            connection.close()

    thread = threading.Thread(target=beat, name=f"heartbeat of {job}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _actor(job: Job) -> Actor:
    """Whoever asked for it; the action has checked the role."""
    return Actor(job.created_by, Role.DEVELOPER)


def _cluster(job: Job) -> tuple[dict[str, Any], str]:
    tell = partial(job_progress, job)
    result = cluster_failures(_actor(job), job.harness, shared_embedder(), build_clusterer(), tell)
    # The rehearsal model knows no better names than the terms.
    if configured_endpoints():
        result["named"] = name_with_model(_actor(job), job.harness, build_model(chat.Role.DIAGNOSER), tell)
    return result, f"{result['clusters']} clusters, {result['unclustered']} unclustered"


def _diagnose(job: Job) -> tuple[dict[str, Any], str]:
    cluster = Cluster.objects.select_related("harness").get(pk=job.target_id or 0)
    job_progress(job, 0, 1, "asking the diagnoser")
    model = _model(job, chat.Role.DIAGNOSER)
    found = diagnose_cluster(_actor(job), cluster, model, job)
    return {"diagnosis": found[0].pk, "diagnoses": [each.pk for each in found]}, found[0].hypothesis


def _draft(job: Job) -> tuple[dict[str, Any], str]:
    proposal = _proposal(job)
    model = _model(job, chat.Role.EDITOR)
    draft_proposal(proposal, model, partial(job_progress, job), job)
    return {"proposal": proposal.pk, "commit": proposal.head_commit}, proposal.title


def _model(job: Job, role: chat.Role) -> NamedModel:
    """The model that was asked for, else that of the role; LoopError where there is no such model."""
    name = str(job.parameters.get("model") or "")
    check_model(role, name)
    return build_model(role, name)


def _proposal(job: Job) -> Proposal:
    return Proposal.objects.select_related("harness", "diagnosis__cluster").get(pk=job.target_id or 0)


_WORK: dict[JobKind, Callable[[Job], tuple[dict[str, Any], str]]] = {
    JobKind.CLUSTER: _cluster,
    JobKind.DIAGNOSE: _diagnose,
    JobKind.DRAFT: _draft,
    JobKind.ASSIGN: assign_new,
    JobKind.IMPORT: import_staged,
    JobKind.PUSH: push_asked,
    JobKind.FETCH: fetch_asked,
}
