from datetime import timedelta

import pytest
from django.utils import timezone

from evolution.loop.cluster_states import escalate, is_escalating
from evolution.models import Cluster, Event, Harness
from evolution.states import ClusterState
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import DEV

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


@pytest.mark.parametrize(
    ("recent", "before", "expected"),
    [
        (5, 10, True),
        (5, 11, False),
        (4, 1, False),
        (50, 0, False),
        (5, 1, True),
        (100, 200, True),
        (99, 200, False),
    ],
)
def test_twice_the_weekly_mean_and_five_at_least_is_escalating(
    recent: int, before: int, *, expected: bool
) -> None:
    assert is_escalating(recent, before) is expected


def failures(cluster: Cluster, days: list[int]) -> None:
    for day in days:
        when = timezone.now() - timedelta(days=day, hours=1)
        make_failure(cluster.harness, cluster=cluster, happened_at=when)


def test_a_cluster_that_grows_fast_escalates_with_its_figures(harness: Harness) -> None:
    growing, steady = make_cluster(harness, 1), make_cluster(harness, 2)
    failures(growing, [0, 1, 2, 3, 4, 5, 10, 20, 30, 40])
    failures(steady, [0, 1, 2, 3, 4, *range(7, 32)])
    escalate(DEV, [growing, steady])
    assert [c.state for c in Cluster.objects.order_by("number")] == [
        ClusterState.ESCALATING,
        ClusterState.NEW,
    ]
    assert Event.objects.get(verb="cluster.escalating").reason.startswith("6 failures in a week, 0.75")
