"""The progress of long work: Job rows that tasks claim and pages follow.

A running job shows a heartbeat; one whose heartbeat is old has lost its worker and is queued again.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from evolution.actors import SYSTEM, Actor
from evolution.errors import MoveRefused, StaleState
from evolution.loop.locks import lock_harness
from evolution.models import Harness, Job
from evolution.states import JobKind, JobState
from evolution.transitions import move

ACTIVE = (JobState.QUEUED, JobState.RUNNING)
# A worker writes its heartbeat every few seconds; this much silence means that it is gone.
SILENCE = timedelta(seconds=60)
# A queued job's message may be lost with the broker; sending it again is harmless.
WAITING = timedelta(seconds=60)
# A job that takes its worker down with it is not tried for ever.
MOST_ATTEMPTS = 3

# done, total, message
Progress = Callable[[int, int, str], None]


def create_job(
    actor: Actor,
    harness: Harness,
    kind: JobKind,
    target_id: int | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Job, bool]:
    """Return the active job of this kind and target, or make one; the flag says whether it is new.

    A job that is active with other parameters is returned too: one target has one job of a kind at a time.
    """
    with transaction.atomic():
        # Two clicks at once would both find nothing.
        lock_harness(harness)
        known = Job.objects.filter(harness=harness, kind=kind, target_id=target_id, state__in=ACTIVE).first()
        if known is not None:
            return known, False
        job = Job.objects.create(
            harness=harness,
            kind=kind,
            target_id=target_id,
            parameters=dict(parameters or {}),
            created_by=actor.name,
        )
        return job, True


def claim_job(job_id: int) -> Job | None:
    """Take a queued job for this worker; None when it is gone, or somebody else's."""
    job = Job.objects.select_related("harness").filter(pk=job_id, state=JobState.QUEUED).first()
    if job is None:
        return None
    try:
        attempts = int(job.result.get("attempts", 0)) + 1
        move(job, JobState.RUNNING, SYSTEM, heartbeat_at=timezone.now(), result={"attempts": attempts})
    except StaleState:
        return None
    return job


def beat_job(job_id: int) -> None:
    """Show that the worker is alive."""
    Job.objects.filter(pk=job_id, state=JobState.RUNNING).update(heartbeat_at=timezone.now())


def job_progress(job: Job, done: int, total: int, message: str) -> None:
    """Write how far the job is, and what it is at."""
    job.done, job.total, job.message = done, total, message
    Job.objects.filter(pk=job.pk, state=JobState.RUNNING).update(
        done=done, total=total, message=message, heartbeat_at=timezone.now()
    )


def finish_job(job: Job, result: dict[str, Any], message: str) -> None:
    """End the job with what came of it."""
    total = max(job.total, 1)
    ended = timezone.now()
    move(
        job, JobState.DONE, SYSTEM, finished_at=ended, result=result, message=message, done=total, total=total
    )


def fail_job(job: Job, reason: str) -> None:
    """End the job with the reason why nothing came of it."""
    move(job, JobState.FAILED, SYSTEM, reason, message=reason, finished_at=timezone.now())


def requeue_lost_jobs() -> list[int]:
    """Queue the jobs whose worker is gone; returns the ids of the jobs whose message is to be sent."""
    now = timezone.now()
    for job in Job.objects.filter(state=JobState.RUNNING, heartbeat_at__lt=now - SILENCE):
        try:
            _requeue(job)
        except (StaleState, MoveRefused):
            # It ended, or another sweep was first.
            continue
    waiting = Job.objects.filter(state=JobState.QUEUED, created_at__lt=now - WAITING)
    return list(waiting.order_by("pk").values_list("pk", flat=True))


def _requeue(job: Job) -> None:
    if int(job.result.get("attempts", 1)) >= MOST_ATTEMPTS:
        fail_job(job, f"the worker was lost {MOST_ATTEMPTS} times at this job; see its log")
    else:
        move(job, JobState.QUEUED, SYSTEM, "the worker was lost", heartbeat_at=None)
