import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction

from evolution.actions import bulk
from evolution.actions.clusters import merge_clusters
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import LoopError, StaleState
from evolution.loop.locks import lock_harness
from evolution.models import BulkAction, Cluster, Event, FailureCase, Harness
from evolution.queries.case_filters import CaseFilter
from evolution.queries.cases import find_ids
from evolution.states import ClusterState
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import DEV, make_harness

pytestmark = pytest.mark.django_db
Act = Callable[[Harness, list[int]], BulkAction]


@pytest.fixture
def harness() -> Harness:
    return make_harness()


def make_cases(harness: Harness, count: int = 4, **fields: Any) -> list[int]:
    return [make_failure(harness, f"case {n}", **fields).pk for n in range(count)]


def read(ids: list[int], *columns: str) -> list[tuple[Any, ...]]:
    return list(FailureCase.objects.filter(pk__in=ids).order_by("pk").values_list(*columns))


def ignore(harness: Harness, ids: list[int]) -> BulkAction:
    return bulk.ignore_cases(DEV, harness, ids, "noise")


def reopen(harness: Harness, ids: list[int]) -> BulkAction:
    return bulk.reopen_cases(DEV, harness, ids)


def tag(harness: Harness, ids: list[int]) -> BulkAction:
    return bulk.tag_cases(DEV, harness, ids, "price")


def untag(harness: Harness, ids: list[int]) -> BulkAction:
    return bulk.untag_cases(DEV, harness, ids, "tone")


def assign(harness: Harness, ids: list[int]) -> BulkAction:
    return bulk.assign_cases(DEV, harness, ids, User.objects.get_or_create(username="anna")[0])


def move(harness: Harness, ids: list[int]) -> BulkAction:
    return bulk.move_to_cluster(DEV, harness, ids, Cluster.objects.get(number=2))


STATE = ("state", "note")
PLACE = ("cluster__number", "strength", "is_pinned")
DEEDS: list[tuple[Act, tuple[str, ...], list[tuple[Any, ...]]]] = [
    (ignore, STATE, [("ignored", "noise"), ("ignored", "old"), ("resolved", "")]),
    (reopen, STATE, [("open", ""), ("open", ""), ("open", "")]),
    (tag, ("tags",), [(["price"],), (["tone", "price"],), (["price"],)]),
    (untag, ("tags",), [([],), ([],), (["price"],)]),
    (assign, ("assignee__username",), [("anna",), ("anna",), ("anna",)]),
    (move, PLACE, [(2, 1.0, True), (2, 1.0, True), (2, 1.0, True)]),
]


def make_mixed(harness: Harness) -> list[int]:
    """An open case without anything, an ignored one of somebody, and a resolved one that is pinned."""
    cluster = make_cluster(harness, 1)
    make_cluster(harness, 2)
    ben = User.objects.create_user("ben")
    return [
        make_failure(harness).pk,
        make_failure(
            harness, state="ignored", note="old", tags=["tone"], assignee=ben, cluster=cluster, strength=0.5
        ).pk,
        make_failure(harness, state="resolved", tags=["price"], cluster=cluster, is_pinned=True).pk,
    ]


@pytest.mark.parametrize(("act", "columns", "after"), DEEDS)
def test_each_deed_writes_its_columns_and_is_undone(
    harness: Harness, act: Act, columns: tuple[str, ...], after: list[tuple[Any, ...]]
) -> None:
    ids = make_mixed(harness)
    before = read(ids, *columns)

    action = act(harness, ids)
    done = read(ids, *columns)
    restored = bulk.undo_bulk(DEV, action)

    assert done == after
    assert action.count == sum(old != new for old, new in zip(before, after, strict=True)) == restored
    assert read(ids, *columns) == before


@pytest.mark.parametrize(("act", "columns"), [(act, columns) for act, columns, _after in DEEDS])
def test_undo_leaves_alone_what_was_changed_since(
    harness: Harness, act: Act, columns: tuple[str, ...]
) -> None:
    ids = make_mixed(harness)
    action = act(harness, ids)
    changed = action.changes.order_by("case_id")[0].case_id
    FailureCase.objects.filter(pk=changed).update(
        state="resolved",
        note="people",
        tags=["tone"],
        assignee=User.objects.create_user("cleo"),
        cluster=None,
    )
    since = read([changed], *columns)

    restored = bulk.undo_bulk(DEV, action)

    assert restored == action.count - 1
    assert read([changed], *columns) == since


def test_undo_is_done_once(harness: Harness) -> None:
    action = tag(harness, make_cases(harness))
    bulk.undo_bulk(DEV, action)

    with pytest.raises(StaleState):
        bulk.undo_bulk(DEV, action)


def test_all_that_pass_a_filter_are_meant_and_no_later_ones(harness: Harness) -> None:
    ids = make_cases(harness, category="price")
    make_failure(harness, category="stock")
    later = make_failure(harness, category="price")

    action = bulk.tag_cases(
        DEV, harness, find_ids(harness, CaseFilter(category="price", upto=ids[-1])), "seen"
    )

    assert action.count == 4
    later.refresh_from_db()
    assert later.tags == []


def test_all_that_a_search_finds_are_meant(harness: Harness) -> None:
    make_cases(harness)
    wanted = make_failure(harness, "券后价说错了")

    action = bulk.ignore_cases(DEV, harness, find_ids(harness, CaseFilter(text="后价")), "known")

    assert [change.case_id for change in action.changes.all()] == [wanted.pk]


def test_cases_of_another_harness_are_not_touched(harness: Harness) -> None:
    theirs = make_cases(make_harness("other"))

    assert tag(harness, theirs).count == 0
    assert read(theirs, "tags") == [([],)] * 4


@pytest.mark.parametrize("act", [ignore, tag, assign])
def test_the_audit_trail_has_one_row_for_all(harness: Harness, act: Act) -> None:
    ids = make_cases(harness)
    before = Event.objects.count()

    action = act(harness, ids)

    event = Event.objects.order_by("-pk")[0]
    assert Event.objects.count() == before + 1
    assert (event.verb, event.target_id, event.data["count"]) == (f"bulkaction.{action.verb}", action.pk, 4)
    assert event.actor == DEV.name


def test_ignoring_takes_a_reason(harness: Harness) -> None:
    ids = make_cases(harness)

    with pytest.raises(LoopError):
        bulk.ignore_cases(DEV, harness, ids, "  ")
    assert read(ids, "state") == [("open",)] * 4


@pytest.mark.parametrize("text", ["", " ", "a,b", "x" * 65])
def test_what_is_no_tag_is_refused(harness: Harness, text: str) -> None:
    with pytest.raises(LoopError):
        bulk.tag_cases(DEV, harness, make_cases(harness), text)


def test_a_cluster_of_another_harness_is_refused(harness: Harness) -> None:
    with pytest.raises(LoopError):
        bulk.move_to_cluster(DEV, harness, make_cases(harness), make_cluster(make_harness("other")))


def test_cases_are_taken_out_of_their_cluster_for_good(harness: Harness) -> None:
    ids = make_cases(harness, cluster=make_cluster(harness))

    bulk.move_to_cluster(DEV, harness, ids, None)

    assert read(ids, "cluster", "strength", "is_pinned") == [(None, None, True)] * 4


def test_a_person_who_is_gone_is_not_assigned_again(harness: Harness) -> None:
    ben = User.objects.create_user("ben")
    ids = make_cases(harness, assignee=ben)
    action = assign(harness, ids)
    ben.delete()

    bulk.undo_bulk(DEV, action)

    assert read(ids, "assignee") == [(None,)] * 4


@pytest.mark.parametrize(("act"), [act for act, _columns, _after in DEEDS])
def test_viewers_change_nothing(harness: Harness, act: Act, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = make_mixed(harness)
    monkeypatch.setattr(f"{__name__}.DEV", Actor("vera", Role.VIEWER))

    with pytest.raises(NotAllowed):
        act(harness, ids)


def test_what_was_in_a_cluster_that_was_merged_twice_since_comes_back_to_what_that_lives_on_in(
    harness: Harness,
) -> None:
    one, two, three, four = (make_cluster(harness, number, (f"{number}",)) for number in (1, 2, 3, 4))
    (case,) = FailureCase.objects.filter(cluster=one)
    action = bulk.move_to_cluster(DEV, harness, [case.pk], four)
    merge_clusters(DEV, two, [one])
    merge_clusters(DEV, three, [two])
    bulk.undo_bulk(DEV, action)
    assert read([case.pk], "cluster__number", "is_pinned") == [(3, False)]


def test_a_move_to_a_cluster_that_was_merged_since_is_undone(harness: Harness) -> None:
    one, two = make_cluster(harness, 1), make_cluster(harness, 2)
    ids = make_cases(harness, 2)
    action = bulk.move_to_cluster(DEV, harness, ids, one)
    merge_clusters(DEV, two, [one])
    assert bulk.undo_bulk(DEV, action) == 2
    assert read(ids, *PLACE) == [(None, None, False)] * 2


def test_an_undo_that_brings_nothing_back_can_be_tried_again(harness: Harness) -> None:
    ids = make_cases(harness, 1)
    action = tag(harness, ids)
    FailureCase.objects.update(tags=[])
    assert [bulk.undo_bulk(DEV, action), bulk.undo_bulk(DEV, action)] == [0, 0]


@pytest.mark.parametrize("act", [reopen, move])
def test_a_resolved_cluster_that_has_open_cases_again_regresses(harness: Harness, act: Act) -> None:
    cluster = make_cluster(harness, 2, state=ClusterState.RESOLVED)
    place, state = (cluster, "resolved") if act is reopen else (None, "open")
    act(harness, make_cases(harness, 2, cluster=place, state=state))
    cluster.refresh_from_db()
    assert cluster.state == ClusterState.REGRESSED


@pytest.mark.django_db(transaction=True)
def test_undoing_a_move_waits_for_a_clustering_that_writes(harness: Harness) -> None:
    cluster = make_cluster(harness, 1)
    ids = make_cases(harness, 1)
    action = bulk.move_to_cluster(DEV, harness, ids, cluster)
    undoing = threading.Thread(
        target=_in_a_connection_of_its_own, args=(partial(bulk.undo_bulk, DEV, action),)
    )
    with transaction.atomic():
        lock_harness(harness)
        undoing.start()
        undoing.join(0.5)
        assert undoing.is_alive()
        assert read(ids, "cluster__number") == [(1,)]
    undoing.join(20)
    assert read(ids, "cluster__number") == [(None,)]


def _in_a_connection_of_its_own(work: Callable[[], object]) -> None:
    try:
        work()
    finally:
        connection.close()


def test_a_case_with_as_many_tags_as_it_may_have_gets_no_more(harness: Harness) -> None:
    full, free = make_failure(harness, "full"), make_failure(harness, "free")
    tags = [f"t{n}" for n in range(50)]
    FailureCase.objects.filter(pk=full.pk).update(tags=tags)

    action = bulk.tag_cases(DEV, harness, [full.pk, free.pk], "more")

    assert action.count == 1
    full.refresh_from_db()
    assert full.tags == tags
