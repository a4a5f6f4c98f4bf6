"""New failures are assigned to clusters as they come: one job for all that come within a few seconds."""

from typing import Any

from celery import current_app
from django.db import transaction

from evolution.actors import SYSTEM
from evolution.adapters.embedding import shared_embedder
from evolution.loop.assignment import assign_failures, has_centres
from evolution.loop.jobs import job_progress
from evolution.loop.locks import lock_harness
from evolution.models import Harness, Job
from evolution.states import JobKind, JobState
from evolution.tasks.sending import send_on_commit

# Seconds in which further failures join the job.
DELAY = 2.0


def request_assignment(harness: Harness) -> None:
    """Have the failures of a harness that nobody has looked at assigned, soon; without clusters there is no need.

    A job that waits takes them along. One that runs may have passed them, so that another one is made.
    """
    with transaction.atomic():
        if not has_centres(harness):
            return
        lock_harness(harness)
        if Job.objects.filter(harness=harness, kind=JobKind.ASSIGN, state=JobState.QUEUED).exists():
            return
        job = Job.objects.create(harness=harness, kind=JobKind.ASSIGN, created_by=SYSTEM.name)
        send_on_commit(lambda: _send(job.pk))


def assign_new(job: Job) -> tuple[dict[str, Any], str]:
    """Assign what has come."""

    def tell(done: int, total: int, message: str) -> None:
        job_progress(job, done, total, message)

    result = assign_failures(SYSTEM, job.harness, shared_embedder, tell)
    return result, f"{result['assigned']} of {result['cases']} assigned to {result['clusters']} clusters"


def _send(job_id: int) -> None:
    # By name: the module of the task imports this one.
    current_app.tasks["evolution.run_job"].apply_async((job_id,), countdown=DELAY)
