"""Stage 2: the open failures of a harness are embedded, grouped, and recognised as the clusters of last time.

Decides in memory, then writes: memberships, centroids and new clusters, each change in the audit trail. What a
cluster means is the next stage's business.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from evolution.actors import Actor
from evolution.loop.cluster_changes import store_change
from evolution.loop.cluster_map import lay_out
from evolution.loop.cluster_names import name_groups
from evolution.loop.cluster_runs import keep_run
from evolution.loop.embeddings import embed_texts, write_failure_texts
from evolution.loop.grouping import Change, Group, build_group, centroid_of, surviving
from evolution.loop.jobs import Progress
from evolution.loop.locks import lock_harness
from evolution.loop.recognition import Found, Known, Origin, recognise
from evolution.loop.steering import NOWHERE, steer
from evolution.models import Cluster, FailureCase, Harness
from evolution.ports import Clusterer, Embedder, Grouping, Vectors
from evolution.states import CaseState
from evolution.transitions import record

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Failures:
    """The open failures of a harness, a row each, in the order of their ids."""

    ids: Ids
    texts: list[str]
    # id of the cluster of last time, 0 for none
    clusters: Ids
    pinned: NDArray[np.bool_]


@dataclass
class Stages:
    """Seconds that each stage took."""

    seconds: dict[str, float] = field(default_factory=dict)

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        """Do the work and keep how long it took."""
        began = time.monotonic()
        result = work()
        self.seconds[name] = round(time.monotonic() - began, 3)
        return result


def cluster_failures(
    actor: Actor, harness: Harness, embedder: Embedder, clusterer: Clusterer, progress: Progress
) -> dict[str, Any]:
    """Group the open failures; returns {"cases", "clusters", "unclustered", "parameters", "run", "seconds"}.

    The same failures give the same clusters, however often it runs. A failure that changed meanwhile stays as it is.
    """
    stages = Stages()
    stages.time("texts", lambda: write_failure_texts(harness, progress))
    failures = read_failures(harness)
    vectors = stages.time("embedding", lambda: embed_texts(embedder, failures.texts, progress))
    progress(len(failures.ids), len(failures.ids), "grouping")
    grouping = stages.time("grouping", lambda: _group(clusterer, vectors, failures))
    progress(len(failures.ids), len(failures.ids), "storing")
    change = stages.time("recognition", lambda: _decide(harness, failures, vectors, grouping))
    places = stages.time("map", lambda: lay_out(vectors, _numbered(change.owners)))
    parameters = {**grouping.parameters, "embedder": embedder.name}
    with transaction.atomic():
        lock_harness(harness)
        run = keep_run(actor, harness, parameters, failures.ids, places)
        figures = stages.time("storing", lambda: store_change(actor, run, change))
        run.figures = {**figures, "seconds": stages.seconds}
        run.save(update_fields=["figures"])
        record(actor, "harness.clustered", harness, "", **figures, run=run.pk)
    return {**figures, "parameters": parameters, "run": run.pk, "seconds": stages.seconds}


def read_failures(harness: Harness) -> Failures:
    """Read the open failures whose text is there, without what makes them big."""
    rows = list(
        FailureCase.objects.filter(harness=harness, state=CaseState.OPEN)
        .exclude(embedded_text="")
        .order_by("pk")
        .values_list("pk", "embedded_text", "cluster_id", "is_pinned")
    )
    return Failures(
        ids=np.array([row[0] for row in rows], dtype=np.int64),
        texts=[row[1] for row in rows],
        clusters=np.array([row[2] or NOWHERE for row in rows], dtype=np.int64),
        pinned=np.array([row[3] for row in rows], dtype=bool),
    )


def _group(clusterer: Clusterer, vectors: Vectors, failures: Failures) -> Grouping:
    if not len(failures.ids):
        return Grouping([], [], {})
    known = np.where(failures.clusters == NOWHERE, -1, failures.clusters)
    return clusterer.group(vectors, known.tolist() if (known >= 0).any() else None)


def _decide(harness: Harness, failures: Failures, vectors: Vectors, grouping: Grouping) -> Change:
    """What becomes of each failure: groups are recognised, then people's decisions steer them."""
    labels = np.array(grouping.labels, dtype=np.int64)
    clusters = {cluster.pk: cluster for cluster in Cluster.objects.filter(harness=harness)}
    by_number = {cluster.number: pk for pk, cluster in clusters.items()}
    rows = [np.flatnonzero(labels == label) for label in np.unique(labels[labels >= 0])]
    found = recognise(
        [(frozenset(failures.ids[own].tolist()), centroid_of(vectors[own])) for own in rows],
        _known(clusters, failures),
    )
    owners = np.full(len(labels), NOWHERE)
    for index, own in enumerate(rows):
        owners[own] = by_number[found[index].number] if index in found else -index - 1
    owners = steer(owners, failures.clusters, failures.pinned, failures.texts, vectors)
    origins = {
        by_number[found[index].number] if index in found else -index - 1: _origin(found.get(index))
        for index in reversed(range(len(rows)))
    }
    groups = _build_groups(owners, vectors, origins)
    name_groups(groups, failures.ids, owners)
    return Change(failures.ids, failures.clusters, owners, groups, clusters)


def _origin(found: Found | None) -> Origin:
    return found.origin if found else Origin.NEW


def _known(clusters: dict[int, Cluster], failures: Failures) -> list[Known]:
    members = {pk: failures.ids[failures.clusters == pk] for pk in clusters}
    survivors = {pk: surviving(clusters, cluster) for pk, cluster in clusters.items()}
    merged = {survivor.pk for pk, survivor in survivors.items() if survivor.pk != pk}
    return [
        Known(
            survivors[pk].number,
            frozenset(members[pk].tolist()),
            np.frombuffer(cluster.centroid, dtype=np.float32) if cluster.centroid else None,
            is_merged=survivors[pk].pk in merged,
        )
        for pk, cluster in sorted(clusters.items(), key=lambda entry: entry[1].number)
    ]


def _build_groups(owners: Ids, vectors: Vectors, origins: dict[int, Origin]) -> dict[int, Group]:
    """The members' centre, reach and strengths, by owner; new ones last, in the order they were found."""
    present = [int(owner) for owner in np.unique(owners) if owner != NOWHERE]
    groups = {}
    for owner in sorted(present, key=lambda owner: (owner < 0, abs(owner))):
        rows = np.flatnonzero(owners == owner)
        groups[owner] = build_group(rows, vectors[rows], origins.get(owner, Origin.PEOPLE))
    return groups


def _numbered(owners: Ids) -> Ids:
    """Owners as labels from 0; -1 for nowhere."""
    present: Sequence[int] = [int(owner) for owner in np.unique(owners) if owner != NOWHERE]
    numbers = {owner: number for number, owner in enumerate(present)} | {NOWHERE: -1}
    return np.array([numbers[owner] for owner in owners.tolist()], dtype=np.int64)
