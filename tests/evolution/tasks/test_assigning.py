import pytest

from evolution.actions.clusters import start_clustering
from evolution.adapters.embedding import shared_embedder
from evolution.models import Harness, Job
from evolution.states import JobKind, JobState
from evolution.tasks.assigning import request_assignment
from evolution.tasks.jobs import perform_job
from tests.evolution.clustering import add, number_of
from tests.evolution.intake import make_failure
from tests.evolution.measured import DEV

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def assignments(harness: Harness) -> list[Job]:
    return list(Job.objects.filter(harness=harness, kind=JobKind.ASSIGN).order_by("pk"))


def clustered(harness: Harness) -> None:
    for _ in range(4):
        make_failure(harness, "优惠券怎么领不到")
    perform_job(start_clustering(DEV, harness, enqueue=False).pk)


def test_without_clusters_nothing_is_asked_for(harness: Harness) -> None:
    add(harness, "a")
    request_assignment(harness)
    assert assignments(harness) == []


def test_requests_of_a_few_seconds_are_one_job_and_a_running_one_gets_a_successor(harness: Harness) -> None:
    clustered(harness)
    for _ in range(2):
        request_assignment(harness)
    (job,) = assignments(harness)
    Job.objects.filter(pk=job.pk).update(state=JobState.RUNNING)
    request_assignment(harness)
    assert len(assignments(harness)) == 2


def test_the_job_assigns_with_the_embedder_of_the_process(harness: Harness) -> None:
    clustered(harness)
    new = make_failure(harness, "优惠券怎么领不到")
    request_assignment(harness)
    perform_job(assignments(harness)[0].pk)
    assert number_of(new) == 1
    assert assignments(harness)[0].state == JobState.DONE
    assert shared_embedder() is shared_embedder()
