"""What people do to many cases at once: all of it can be undone, for the cases that nobody has changed since."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.contrib.postgres.fields import ArrayField
from django.db import connection, transaction
from django.db.models import (
    BigIntegerField,
    BooleanField,
    CharField,
    Exists,
    F,
    Field,
    FloatField,
    Func,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, JSONObject, Now
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actions.case_notes import MOST_TAGS, clean_tag
from evolution.actors import Actor, Role
from evolution.errors import LoopError, StaleState
from evolution.loop.cluster_decisions import note_moved
from evolution.loop.cluster_states import regress
from evolution.loop.grouping import surviving
from evolution.loop.locks import lock_harness
from evolution.models import BulkAction, BulkChange, Cluster, FailureCase, Harness
from evolution.states import CaseState, ClusterState
from evolution.transitions import Told, move_all, record

Cases = QuerySet[FailureCase]
Write = Callable[[Cases, Actor, BulkAction, Told], int]
# Ids of cases, or a query that gives them; those of another harness are left out.
Chosen = Sequence[int] | QuerySet[FailureCase, int]
_TAGS: "ArrayField[Any, Any]" = ArrayField(CharField(max_length=64))


@dataclass(frozen=True)
class Deed:
    """One kind of bulk action with what it was given."""

    verb: str
    # the columns that it writes; what they held is kept
    columns: tuple[str, ...]
    # the cases that it would change, and those that are as it left them
    changes: Q
    stands: Q
    # write the cases that it is about, or write them back, with a row in the audit trail; return how many
    apply: "Write"
    restore: "Write"
    parameters: dict[str, Any] = field(default_factory=dict)


def ignore_cases(actor: Actor, harness: Harness, chosen: Chosen, reason: str) -> BulkAction:
    """Put open cases aside, saying why."""
    if not reason.strip():
        raise LoopError(_("say why the cases are to be ignored"))
    return _perform(actor, harness, chosen, _ignoring(reason.strip()))


def reopen_cases(actor: Actor, harness: Harness, chosen: Chosen) -> BulkAction:
    """Take cases that were ignored or resolved back into the inbox."""
    return _perform(actor, harness, chosen, _reopening())


def tag_cases(actor: Actor, harness: Harness, chosen: Chosen, tag: str) -> BulkAction:
    """Give cases a tag. Raises LoopError for one that is none."""
    return _perform(actor, harness, chosen, _tagging(clean_tag(tag)))


def untag_cases(actor: Actor, harness: Harness, chosen: Chosen, tag: str) -> BulkAction:
    """Take a tag from cases."""
    return _perform(actor, harness, chosen, _untagging(clean_tag(tag)))


def assign_cases(actor: Actor, harness: Harness, chosen: Chosen, person: User | None) -> BulkAction:
    """Make cases somebody's, or nobody's with None."""
    name = person.get_username() if person else ""
    return _perform(actor, harness, chosen, _assigning(person.pk if person else None, name))


@transaction.atomic
def move_to_cluster(actor: Actor, harness: Harness, chosen: Chosen, cluster: Cluster | None) -> BulkAction:
    """Put cases into a cluster, or into none, where they stay when failures are clustered again.

    Raises LoopError when the cluster is of another harness, was merged into another, or is ignored.
    """
    actor.require(Role.DEVELOPER)
    _keep_out_clusterings(harness, "move")
    if cluster is not None:
        cluster.refresh_from_db()
    if cluster is not None and (cluster.harness_id != harness.pk or cluster.merged_into_id is not None):
        raise LoopError(_("there is no such cluster"))
    if cluster is not None and cluster.state == ClusterState.IGNORED:
        raise LoopError(_("%(cluster)s is ignored: reopen it first") % {"cluster": cluster})
    number = cluster.number if cluster else None
    return _perform(actor, harness, chosen, _moving(cluster.pk if cluster else None, number))


@transaction.atomic
def undo_bulk(actor: Actor, action: BulkAction) -> int:
    """Bring the cases of a bulk action back to what they were; returns how many.

    Those that somebody has changed since are left alone; where that is all, it can be tried again. Raises StaleState
    when it has been undone already.
    """
    actor.require(Role.DEVELOPER)
    _keep_out_clusterings(action.harness, action.verb)
    undone = BulkAction.objects.filter(pk=action.pk, undone_at=None)
    if undone.update(undone_at=timezone.now(), undone_by=actor.name) != 1:
        raise StaleState(_("this has been undone already"))
    deed = _read_deed(action)
    cases = FailureCase.objects.filter(deed.stands, _was(action), harness=action.harness_id)
    restored = deed.restore(
        cases, actor, action, Told("bulkaction.undone", action, data={"deed": action.verb})
    )
    if not restored:
        BulkAction.objects.filter(pk=action.pk).update(undone_at=None, undone_by="")
    _mend(action)
    _follow(actor, action)
    return restored


@transaction.atomic
def _perform(actor: Actor, harness: Harness, chosen: Chosen, deed: Deed) -> BulkAction:
    """Keep what the cases are that will be changed, change them, and say so once in the audit trail."""
    actor.require(Role.DEVELOPER)
    _keep_out_clusterings(harness, deed.verb)
    action = BulkAction.objects.create(
        harness=harness, actor=actor.name, verb=deed.verb, parameters=deed.parameters
    )
    cases = FailureCase.objects.filter(deed.changes, harness=harness, pk__in=chosen)
    action.count = _keep(action, cases, deed.columns)
    action.save(update_fields=["count"])
    said = {name: value for name, value in deed.parameters.items() if name != "reason"}
    told = Told(f"bulkaction.{deed.verb}", action, deed.parameters.get("reason", ""), said)
    deed.apply(FailureCase.objects.filter(pk__in=_changed(action)), actor, action, told)
    _follow(actor, action)
    return action


def _keep_out_clusterings(harness: Harness, verb: str) -> None:
    """Let no clustering write its own while cases are moved between clusters."""
    if verb == "move":
        lock_harness(harness)


def _changed(action: BulkAction) -> QuerySet[BulkChange, int]:
    return BulkChange.objects.filter(action=action).values_list("case_id", flat=True)


def _was(action: BulkAction, **before: str) -> Exists:
    """That the action changed the case, and what it held before."""
    held = {f"before__{column}": value for column, value in before.items()}
    return Exists(BulkChange.objects.filter(action=action, case=OuterRef("pk"), **held))


def _keep(action: BulkAction, cases: Cases, columns: Sequence[str]) -> int:
    """Write down what the columns of the cases hold, and lock the cases; returns how many they are."""
    before = JSONObject(**{column: F(column) for column in columns})
    # In one order, so that two at once wait for each other instead of standing in each other's way.
    rows = cases.order_by("pk").select_for_update(no_key=True, of=("self",)).values_list("pk", before)
    query, parameters = rows.query.sql_with_params()
    with connection.cursor() as cursor:
        cursor.execute(f"{_KEEP} ({query}) AS picked", [action.pk, *parameters])
        return int(cursor.rowcount)


_KEEP = "INSERT INTO evolution_bulkchange (action_id, case_id, before) SELECT %s, picked.* FROM"


def _before(action: BulkAction, column: str, kind: "Field[Any, Any]") -> Cast:
    """What a column of the case held before the action."""
    change = BulkChange.objects.filter(action=action, case=OuterRef("pk"))
    return Cast(Subquery(change.values_list(KeyTextTransform(column, "before"))), kind)


def _follow(actor: Actor, action: BulkAction) -> None:
    """Let clusters follow: their centres where members came or went, their states where cases are open again."""
    if action.verb in {"ignore", "reopen", "move"}:
        cases = FailureCase.objects.filter(pk__in=_changed(action), state=CaseState.OPEN)
        resolved = Cluster.objects.filter(harness=action.harness, state=ClusterState.RESOLVED)
        filled = resolved.filter(Exists(cases.filter(cluster=OuterRef("pk"))))
        regress(actor, list(filled.values_list("pk", flat=True)))
    if action.verb != "move":
        return
    left = {
        change for change in action.changes.values_list("before__cluster_id", flat=True).distinct() if change
    }
    clusters = _read_clusters(action.harness)
    touched = {pk for pk in left | {action.parameters["cluster_id"]} if pk in clusters}
    note_moved(action.harness, {surviving(clusters, clusters[pk]).pk for pk in touched})


def _read_clusters(harness: Harness) -> dict[int, Cluster]:
    """The clusters of a harness by id, without what makes them big."""
    return Cluster.objects.filter(harness=harness).defer("centroid").in_bulk()


def _mend(action: BulkAction) -> None:
    """Point nothing at people who are gone; what was in a cluster that is one with another now is in the other."""
    cases = FailureCase.objects.filter(pk__in=_changed(action))
    if action.verb == "assign":
        people = User.objects.filter(pk=OuterRef("assignee_id"))
        cases.filter(~Exists(people), assignee_id__isnull=False).update(assignee=None)
    if action.verb == "move":
        clusters = _read_clusters(action.harness)
        for cluster in [cluster for cluster in clusters.values() if cluster.merged_into_id is not None]:
            cases.filter(cluster=cluster).update(cluster=surviving(clusters, cluster))


def _update(cases: Cases, actor: Actor, told: Told, values: dict[str, Any]) -> int:
    count = cases.update(**values, updated_at=Now())
    record(actor, told.verb, told.about, told.reason, **told.data, count=count)
    return count


def _set(**values: Any) -> Write:
    return lambda cases, actor, _action, told: _update(cases, actor, told, values)


def _set_back(**columns: "Field[Any, Any]") -> Write:
    def restore(cases: Cases, actor: Actor, action: BulkAction, told: Told) -> int:
        values = {column: _before(action, column, kind) for column, kind in columns.items()}
        return _update(cases, actor, told, values)

    return restore


def _move_states(to: CaseState, note: str) -> Write:
    return lambda cases, actor, _action, told: move_all(cases, to, actor, told, note=note, updated_at=Now())


def _move_states_back(cases: Cases, actor: Actor, action: BulkAction, told: Told) -> int:
    """Each to the state that it was in."""
    moved = 0
    note = _before(action, "note", TextField())
    for state in CaseState:
        were = cases.filter(_was(action, state=state.value))
        if were.exists():
            moved += move_all(were, state, actor, told, note=note, updated_at=Now())
    return moved


def _ignoring(reason: str) -> Deed:
    return Deed(
        "ignore",
        ("state", "note"),
        changes=Q(state=CaseState.OPEN),
        stands=Q(state=CaseState.IGNORED, note=reason),
        apply=_move_states(CaseState.IGNORED, reason),
        restore=_move_states_back,
        parameters={"reason": reason},
    )


def _reopening() -> Deed:
    return Deed(
        "reopen",
        ("state", "note"),
        changes=~Q(state=CaseState.OPEN),
        stands=Q(state=CaseState.OPEN),
        apply=_move_states(CaseState.OPEN, ""),
        restore=_move_states_back,
    )


def _with_tag(tag: str) -> Func:
    return Func(F("tags"), Value(tag), function="array_append", output_field=_TAGS)


def _without_tag(tag: str) -> Func:
    return Func(F("tags"), Value(tag), function="array_remove", output_field=_TAGS)


# As the page of a case, which refuses more.
_HAS_ROOM = Q(tags__len__lt=MOST_TAGS)


def _tagging(tag: str) -> Deed:
    has_it = Q(tags__contains=[tag])
    return Deed(
        "tag",
        ("tags",),
        ~has_it & _HAS_ROOM,
        has_it,
        _set(tags=_with_tag(tag)),
        _set(tags=_without_tag(tag)),
        {"tag": tag},
    )


def _untagging(tag: str) -> Deed:
    has_it = Q(tags__contains=[tag])
    return Deed(
        "untag",
        ("tags",),
        has_it,
        ~has_it & _HAS_ROOM,
        _set(tags=_without_tag(tag)),
        _set(tags=_with_tag(tag)),
        {"tag": tag},
    )


def _assigning(person: int | None, name: str) -> Deed:
    theirs = Q(assignee=person)
    return Deed(
        "assign",
        ("assignee_id",),
        ~theirs,
        theirs,
        _set(assignee=person),
        _set_back(assignee_id=BigIntegerField()),
        {"person": person, "assignee": name},
    )


def _moving(cluster: int | None, number: int | None, survivor: int | None = None) -> Deed:
    there = Q(cluster=cluster, is_pinned=True)
    if survivor is not None:
        # It is one with another by now, and its cases are there.
        there |= Q(cluster=survivor, is_pinned=True)
    return Deed(
        "move",
        ("cluster_id", "strength", "is_pinned"),
        ~there,
        there,
        _set(cluster=cluster, strength=None if cluster is None else 1.0, is_pinned=True),
        _set_back(cluster_id=BigIntegerField(), strength=FloatField(), is_pinned=BooleanField()),
        {"cluster_id": cluster, "cluster": number},
    )


def _read_deed(action: BulkAction) -> Deed:
    """The deed that an action was, from what is kept of it."""
    given = action.parameters
    if action.verb == "ignore":
        return _ignoring(given["reason"])
    if action.verb == "reopen":
        return _reopening()
    if action.verb == "assign":
        return _assigning(given["person"], given["assignee"])
    if action.verb == "move":
        clusters = _read_clusters(action.harness)
        target = clusters.get(given["cluster_id"] or 0)
        survivor = surviving(clusters, target).pk if target else None
        return _moving(given["cluster_id"], given["cluster"], survivor)
    return _tagging(given["tag"]) if action.verb == "tag" else _untagging(given["tag"])
