"""Performs a job in the command's own process, so that commands need no worker."""

from django.core.management.base import CommandError

from evolution.models import Job
from evolution.states import JobState
from evolution.tasks.jobs import perform_job


def run_here(job: Job) -> Job:
    """Run the job to its end and return it, done or failed; CommandError when a worker has it already."""
    perform_job(job.pk)
    job.refresh_from_db()
    if job.state in {JobState.QUEUED, JobState.RUNNING}:
        raise CommandError(f"{job} is being worked on by somebody else; look at the board")
    return job
