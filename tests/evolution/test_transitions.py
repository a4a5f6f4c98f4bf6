"""States move by guarded update, one audit row each, and the audit trail can't be rewritten."""

import pytest
from django.db import Error, connection, transaction

from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import MoveRefused, StaleState
from evolution.models import Cluster, Event, Harness
from evolution.states import ClusterState, HarnessKind
from evolution.transitions import change, move
from tests.audit_trail import have_it_refuse

DEVELOPER = Actor("dev", Role.DEVELOPER)


@pytest.fixture
def cluster(db: None) -> Cluster:
    harness = Harness.objects.create(name="shop", kind=HarnessKind.AGENT, path="shop.git")
    return Cluster.objects.create(harness=harness, number=1, name="late parcels")


def test_move_stores_the_state_and_one_audit_row(cluster: Cluster) -> None:
    move(cluster, ClusterState.IGNORED, DEVELOPER, "a known outage")
    event = Event.objects.get()
    assert Cluster.objects.get().state == ClusterState.IGNORED
    assert (event.actor, event.verb, event.reason) == ("dev", "cluster.ignored", "a known outage")
    assert event.harness_id == cluster.harness_id


def test_move_refuses_what_the_machine_does_not_know(cluster: Cluster) -> None:
    with pytest.raises(MoveRefused, match="can't become"):
        move(cluster, ClusterState.REGRESSED, DEVELOPER)
    assert not Event.objects.exists()


def test_the_second_of_two_movers_loses(cluster: Cluster) -> None:
    stale = Cluster.objects.get()
    move(cluster, ClusterState.IGNORED, DEVELOPER)
    with pytest.raises(StaleState):
        move(stale, ClusterState.DIAGNOSED, DEVELOPER)
    assert Cluster.objects.get().state == ClusterState.IGNORED
    assert Event.objects.count() == 1


def test_fields_are_changed_only_in_the_state_that_was_read(cluster: Cluster) -> None:
    stale = Cluster.objects.get()
    change(cluster, name="late or lost")
    move(cluster, ClusterState.IGNORED, DEVELOPER)
    with pytest.raises(StaleState):
        change(stale, name="lost")
    assert Cluster.objects.get().name == "late or lost"


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE evolution_event SET actor = 'x'",
        "DELETE FROM evolution_event",
        "SET LOCAL session_replication_role = replica; DELETE FROM evolution_event",
    ],
)
def test_the_database_refuses_to_rewrite_the_audit_trail(cluster: Cluster, sql: str) -> None:
    move(cluster, ClusterState.IGNORED, DEVELOPER)
    with pytest.raises(Error, match="append-only"), transaction.atomic():
        connection.cursor().execute(sql)
    assert Event.objects.get().actor == "dev"


def test_a_role_includes_those_below_it() -> None:
    Actor("op", Role.OPERATOR).require(Role.DEVELOPER)
    with pytest.raises(NotAllowed, match="needs operator"):
        DEVELOPER.require(Role.OPERATOR)


@pytest.mark.parametrize("first", ["", "SET LOCAL session_replication_role = replica; "])
def test_the_audit_trail_is_not_emptied_either(cluster: Cluster, first: str) -> None:
    move(cluster, ClusterState.IGNORED, DEVELOPER)
    have_it_refuse()
    with pytest.raises(Error, match="append-only"), transaction.atomic():
        connection.cursor().execute(f"{first}TRUNCATE evolution_event")
    assert Event.objects.get().actor == "dev"
