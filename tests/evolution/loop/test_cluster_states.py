from datetime import timedelta

import pytest
from django.utils import timezone

from evolution.loop.cluster_states import escalate, is_escalating, regress, settle_states
from evolution.models import Cluster, Event, Harness
from evolution.states import CaseState, ClusterState
from evolution.transitions import move
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
    escalate(DEV, [growing.pk, steady.pk])
    assert [c.state for c in Cluster.objects.order_by("number")] == [
        ClusterState.ESCALATING,
        ClusterState.NEW,
    ]
    assert Event.objects.get(verb="cluster.escalating").reason.startswith("6 failures in a week, 0.75")


def test_failures_that_a_clustering_moved_are_not_new(harness: Harness) -> None:
    cluster = make_cluster(harness)
    failures(cluster, [0, 1, 2, 20])
    before = set(cluster.members.values_list("pk", flat=True))
    failures(cluster, [0, 1, 2, 3])
    moved = set(cluster.members.values_list("pk", flat=True)) - before
    escalate(DEV, [cluster.pk], moved)
    cluster.refresh_from_db()
    assert cluster.state == ClusterState.NEW
    escalate(DEV, [cluster.pk])
    cluster.refresh_from_db()
    assert cluster.state == ClusterState.ESCALATING


def test_states_follow_from_the_failures_as_they_are_now(harness: Harness) -> None:
    over, back, busy = (make_cluster(harness, number, ("a", "b")) for number in (1, 2, 3))
    for cluster in (over, back):
        cluster.members.update(state=CaseState.RESOLVED)
    Cluster.objects.filter(pk=back.pk).update(state=ClusterState.RESOLVED)
    back.members.filter(title="a").update(state=CaseState.OPEN)
    # Somebody has moved it since it was read.
    move(Cluster.objects.get(pk=busy.pk), ClusterState.IGNORED, DEV, "x")
    settle_states(DEV, [over.pk, back.pk, busy.pk])
    states = list(Cluster.objects.order_by("number").values_list("state", flat=True))
    assert states == [ClusterState.RESOLVED, ClusterState.REGRESSED, ClusterState.IGNORED]


def test_only_resolved_clusters_with_open_failures_regress(harness: Harness) -> None:
    empty = make_cluster(harness, 1, state=ClusterState.RESOLVED)
    new = make_cluster(harness, 2, ("a",))
    regress(DEV, [empty.pk, new.pk])
    assert set(Cluster.objects.values_list("state", flat=True)) == {ClusterState.RESOLVED, ClusterState.NEW}
