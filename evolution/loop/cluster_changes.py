"""Writes what a clustering decided: new clusters, memberships, states; each automatic change with its reason.

The caller holds the harness's lock. A failure that somebody moved while the clustering ran stays where they put it.
"""

from collections import Counter, defaultdict
from typing import Any

import numpy as np
from django.db import connection
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from evolution.actors import Actor
from evolution.loop.cluster_decisions import next_number, note_moved
from evolution.loop.cluster_runs import keep_groups
from evolution.loop.cluster_states import escalate, ignore_arrivals, settle_states
from evolution.loop.grouping import Change, join_groups, surviving
from evolution.loop.recognition import Origin
from evolution.models import Cluster, ClusterRun
from evolution.transitions import record

Ids = NDArray[np.int64]


def store_change(actor: Actor, run: ClusterRun, change: Change) -> dict[str, Any]:
    """Store a clustering; returns its figures."""
    mixed = _follow_merges(change)
    _create_clusters(actor, run, change)
    for owner, group in change.groups.items():
        cluster = change.filled[owner]
        cluster.centroid, cluster.reach = group.centroid.tobytes(), group.reach
    Cluster.objects.bulk_update(change.filled.values(), ["centroid", "reach"])
    after = np.array(
        [change.filled[owner].pk if owner else 0 for owner in change.owners.tolist()], dtype=np.int64
    )
    store_members(change.ids, change.before, after, _strengths(change))
    note_moved(run.harness, mixed)
    _record_moves(actor, run, change, after)
    keep_groups(run, change)
    _settle(actor, change, after)
    clustered = int((after > 0).sum())
    origins = Counter(str(group.origin) for group in change.groups.values())
    return {
        "cases": len(change.ids),
        "clusters": len(change.groups),
        "unclustered": len(change.ids) - clustered,
        "origins": dict(sorted(origins.items())),
    }


def _settle(actor: Actor, change: Change, after: Ids) -> None:
    """Move the states that follow; only clusters that new failures came to may have escalated."""
    arrived = after * (change.before != after)
    ignore_arrivals(actor, {pk: change.ids[arrived == pk].tolist() for pk in set(arrived.tolist()) - {0}})
    settle_states(actor, {*change.clusters, *(cluster.pk for cluster in change.filled.values())})
    is_new = (change.before == 0) & (after > 0)
    has_moved = (change.before > 0) & (after > 0) & (change.before != after)
    escalate(actor, set(after[is_new].tolist()), change.ids[has_moved].tolist())


def _follow_merges(change: Change) -> set[int]:
    """Put what was found of clusters that people have merged meanwhile into what these live on in; returns the ids."""
    change.clusters = Cluster.objects.in_bulk(list(change.clusters))
    mixed = set()
    for owner in [owner for owner in change.groups if owner > 0]:
        survivor = surviving(change.clusters, change.clusters[owner]).pk
        if survivor == owner:
            continue
        group = change.groups.pop(owner)
        change.owners[group.rows] = survivor
        there = change.groups.get(survivor)
        change.groups[survivor] = join_groups(there, group) if there else group
        mixed.add(survivor)
    return mixed


def store_members(ids: Ids, before: Ids, after: Ids, strengths: NDArray[np.float32]) -> int:
    """Write cluster and strength of the failures that are still open and where they were; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(
            _UPDATE, [ids.tolist(), before.tolist(), after.tolist(), [round(float(s), 3) for s in strengths]]
        )
        return int(cursor.rowcount)


_UPDATE = """
UPDATE evolution_failurecase failure
SET cluster_id = NULLIF(new.after, 0), strength = CASE WHEN new.after = 0 THEN NULL ELSE new.strength END
FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[], %s::float8[]) AS new (id, before, after, strength)
WHERE failure.id = new.id AND failure.state = 'open' AND coalesce(failure.cluster_id, 0) = new.before
  AND (NOT failure.is_pinned OR new.before = new.after)
  AND (new.before <> new.after OR failure.strength IS DISTINCT FROM new.strength)
"""


def _create_clusters(actor: Actor, run: ClusterRun, change: Change) -> None:
    new = [owner for owner in change.groups if owner < 0]
    first = next_number(run.harness)
    created = Cluster.objects.bulk_create(
        Cluster(harness=run.harness, number=first + place, name=change.groups[owner].name[:200])
        for place, owner in enumerate(new)
    )
    change.filled = {owner: change.clusters[owner] for owner in change.groups if owner > 0}
    change.filled |= dict(zip(new, created, strict=True))
    for owner, cluster in zip(new, created, strict=True):
        size = len(change.groups[owner].rows)
        record(
            actor, "cluster.found", cluster, _("no cluster of last time is like it"), run=run.pk, cases=size
        )


def _strengths(change: Change) -> NDArray[np.float32]:
    strengths = np.zeros(len(change.ids), dtype=np.float32)
    for group in change.groups.values():
        strengths[group.rows] = group.strengths
    return strengths


def _record_moves(actor: Actor, run: ClusterRun, change: Change, after: Ids) -> None:
    """One row for each cluster of last time whose members are not the same, and why."""
    moved = np.flatnonzero(change.before != after)
    gained = Counter(after[moved].tolist())
    lost: dict[int, Counter[int]] = defaultdict(Counter)
    for old, new in zip(change.before[moved].tolist(), after[moved].tolist(), strict=True):
        lost[old][new] += 1
    numbers = {c.pk: c.number for c in [*change.clusters.values(), *change.filled.values()]}
    origins = {cluster.pk: change.groups[owner].origin for owner, cluster in change.filled.items()}
    for pk, cluster in change.clusters.items():
        if not gained[pk] and pk not in lost:
            continue
        to = {str(numbers.get(new, 0)): count for new, count in sorted(lost[pk].items())}
        verb = "cluster.regrouped" if pk in origins else "cluster.emptied"
        data = {"run": run.pk, "gained": gained[pk], "lost": sum(lost[pk].values()), "to": to}
        record(actor, verb, cluster, _reason(origins.get(pk)), **data)


def _reason(origin: Origin | None) -> str:
    reasons = {
        Origin.MEMBERS: _("recognised by its members"),
        Origin.CENTROID: _("recognised by what its failures say"),
        Origin.MERGED: _("people merged clusters into it"),
        Origin.PEOPLE: _("people put failures there"),
    }
    gone = _("its failures are in other clusters now, or in none")
    return reasons.get(origin, gone) if origin else gone
