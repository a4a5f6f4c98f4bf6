from datetime import timedelta

import pytest
from django.utils import timezone

from evolution.actions.clusters import start_clustering
from evolution.actions.harnesses import ensure_starter
from evolution.actions.proposals import start_draft
from evolution.errors import LoopError
from evolution.loop.jobs import MOST_ATTEMPTS, claim_job, job_progress, requeue_lost_jobs
from evolution.models import Harness, Job, Proposal
from evolution.states import JobKind, JobState, ProposalState
from evolution.tasks import jobs
from evolution.tasks.jobs import perform_job, resume_lost_jobs
from tests.evolution.loop.drafts import make_diagnosis
from tests.evolution.measured import DEV

pytestmark = pytest.mark.django_db


@pytest.fixture
def job() -> Job:
    return start_clustering(DEV, Harness.objects.create(name="shop", kind="agent", path="shop.git"))


def silence(job: Job) -> None:
    Job.objects.filter(pk=job.pk).update(heartbeat_at=timezone.now() - timedelta(minutes=5))


def test_a_job_is_claimed_once(job: Job) -> None:
    assert claim_job(job.pk) is not None
    assert claim_job(job.pk) is None
    assert claim_job(0) is None


def test_progress_stands_in_the_row(job: Job) -> None:
    claimed = claim_job(job.pk)
    assert claimed is not None
    job_progress(claimed, 3, 10, "embedding")
    job.refresh_from_db()
    assert (job.done, job.total, job.message, job.state) == (3, 10, "embedding", JobState.RUNNING)


def test_a_job_is_run_to_its_end(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(jobs._WORK, JobKind.CLUSTER, lambda _job: ({"clusters": 3}, "3 clusters"))
    perform_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.result, job.message) == (JobState.DONE, {"clusters": 3}, "3 clusters")


@pytest.mark.parametrize("error", [LoopError("the model is down"), ValueError("the model is down")])
def test_a_job_that_fails_says_why(job: Job, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(_job: Job) -> None:
        raise error

    monkeypatch.setitem(jobs._WORK, JobKind.CLUSTER, fail)
    perform_job(job.pk)
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "the model is down" in job.message
    assert start_clustering(DEV, job.harness) != job


def test_a_silent_job_is_queued_again(job: Job) -> None:
    claim_job(job.pk)
    assert requeue_lost_jobs() == []
    silence(job)
    requeue_lost_jobs()
    job.refresh_from_db()
    assert job.state == JobState.QUEUED


def test_a_lost_message_is_sent_again(job: Job) -> None:
    Job.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    assert requeue_lost_jobs() == [job.pk]


def test_a_job_that_kills_its_workers_is_given_up() -> None:
    diagnosis = make_diagnosis(ensure_starter(DEV, "live_commerce"))
    proposal = start_draft(DEV, diagnosis)
    job = Job.objects.get()
    for _ in range(MOST_ATTEMPTS):
        claim_job(job.pk)
        silence(job)
        resume_lost_jobs()
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    stored = Proposal.objects.get(pk=proposal.pk)
    assert (stored.state, "lost" in stored.reason) == (ProposalState.FAILED, True)


def test_a_draft_job_that_fails_ends_its_proposal(monkeypatch: pytest.MonkeyPatch) -> None:
    proposal = start_draft(DEV, make_diagnosis(ensure_starter(DEV, "live_commerce")))

    def fail(*_arguments: str) -> None:
        raise LoopError("no model is set")

    monkeypatch.setattr(jobs, "build_model", fail)
    perform_job(Job.objects.get().pk)
    stored = Proposal.objects.get(pk=proposal.pk)
    assert (stored.state, stored.reason) == (ProposalState.FAILED, "no model is set")
