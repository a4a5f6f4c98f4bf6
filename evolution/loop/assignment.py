"""Between clusterings: new failures go to the cluster that their nearest known failures are in, if it reaches them.

What fits none stays unclustered, for the next clustering to group.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db import transaction
from django.utils.translation import gettext as _
from numpy.typing import NDArray

from evolution.actors import Actor
from evolution.loop.cluster_changes import store_members
from evolution.loop.cluster_decisions import NAMED
from evolution.loop.cluster_states import escalate, ignore_arrivals, settle_states
from evolution.loop.embeddings import (
    build_failure_texts,
    embed_texts,
    read_member_vectors,
    store_failure_texts,
)
from evolution.loop.grouping import surviving
from evolution.loop.jobs import Progress
from evolution.loop.locks import lock_harness
from evolution.models import Cluster, FailureCase, Harness
from evolution.ports import Embedder, Vectors
from evolution.states import CaseState
from evolution.transitions import record

# Clusters whose members a failure is compared with, the nearest centres first.
CANDIDATES = 5
# Members of each that are compared, the newest.
COMPARED = 200
# Nearest members that say where a failure belongs, each by the fourth power of its cosine.
VOTERS = 10
# From this cosine on, two texts are one.
IDENTICAL = 0.9999


@dataclass(frozen=True)
class Reach:
    """Where clusters are and how far they go; a merged one stands for what it was merged into."""

    # by row: id of the cluster
    clusters: NDArray[np.int64]
    centroids: Vectors
    # by id of the cluster: cosine with any of its centres from which a failure may belong to it
    reach: dict[int, float]


def assign_failures(
    actor: Actor, harness: Harness, build_embedder: Callable[[], Embedder], progress: Progress
) -> dict[str, Any]:
    """Assign the open failures that nobody has looked at; returns {"cases", "assigned", "clusters", "unclustered"}.

    Without clusters nothing is done, and the embedder is not loaded. A failure counts as looked at once it is known
    where it belongs: what is cut off in between is done again.
    """
    clusters = {cluster.pk: cluster for cluster in Cluster.objects.filter(harness=harness)}
    unseen = set(_unseen(harness)) if has_centres(harness) else set()
    if not unseen:
        return {"cases": 0, "assigned": 0, "clusters": 0, "unclustered": 0}
    built = build_failure_texts(harness, progress)
    cases = _with_twins(harness, {one.pk: one.text for one in built if one.pk in unseen})
    embedder = build_embedder()
    vectors = embed_texts(embedder, list(cases.values()), progress)
    reach = _read_reach(clusters, vectors.shape[1])
    owners, strengths = choose_clusters(vectors, reach, _read_members(embedder.name, vectors, reach))
    ids = np.array(list(cases), dtype=np.int64)
    with transaction.atomic():
        lock_harness(harness)
        store_failure_texts(built)
        owners = _follow_merges(harness, owners)
        touched = _store(actor, ids, owners, strengths)
    assigned = len(unseen & set(ids[owners > 0].tolist()))
    return {
        "cases": len(unseen),
        "assigned": assigned,
        "clusters": touched,
        "unclustered": len(unseen) - assigned,
    }


def has_centres(harness: Harness) -> bool:
    """Whether there are clusters that failures can be assigned to."""
    return Cluster.objects.filter(harness=harness, centroid__isnull=False, reach__isnull=False).exists()


def choose_clusters(
    vectors: Vectors, reach: Reach, members: tuple[NDArray[np.int64], Vectors]
) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return each row's cluster, 0 for none, and its cosine with the nearest centre of it.

    `members` are the clusters of known failures and their vectors, shapes (members,) and (members, dimensions).
    """
    owners = np.zeros(len(vectors), dtype=np.int64)
    strengths = np.zeros(len(vectors), dtype=np.float32)
    if not len(reach.clusters) or not len(members[0]):
        return owners, strengths
    to_centres = vectors @ reach.centroids.T
    to_members = vectors @ members[1].T
    for row in range(len(vectors)):
        cluster, closest = _elect(to_members[row], members[0])
        cosine = float(to_centres[row, reach.clusters == cluster].max(initial=-1.0))
        if closest >= IDENTICAL or cosine >= reach.reach.get(cluster, 2.0):
            owners[row], strengths[row] = cluster, max(cosine, 0.0)
    return owners, strengths


def _elect(cosines: NDArray[np.float32], clusters: NDArray[np.int64]) -> tuple[int, float]:
    """The cluster that the nearest members elect, and the cosine of the nearest; an identical one decides alone."""
    nearest = np.argsort(-cosines, kind="stable")[:VOTERS]
    closest = float(cosines[nearest[0]])
    if closest >= IDENTICAL:
        return int(clusters[nearest[0]]), closest
    votes: dict[int, float] = defaultdict(float)
    for place in nearest:
        votes[int(clusters[place])] += max(float(cosines[place]), 0.0) ** 4
    return max(sorted(votes), key=votes.__getitem__), closest


def _unseen(harness: Harness) -> list[int]:
    cases = FailureCase.objects.filter(
        harness=harness, state=CaseState.OPEN, cluster=None, embedded_text="", is_pinned=False
    )
    return list(cases.order_by("pk").values_list("pk", flat=True))


def _with_twins(harness: Harness, texts: dict[int, str]) -> dict[int, str]:
    """The texts by case, with the unclustered cases that say the same: they go where these go."""
    free = FailureCase.objects.filter(harness=harness, state=CaseState.OPEN, cluster=None, is_pinned=False)
    twins = free.filter(embedded_text__in=set(texts.values())).values_list("pk", "embedded_text")
    return dict(sorted({**dict(twins), **texts}.items()))


def _read_reach(clusters: dict[int, Cluster], dimensions: int) -> Reach:
    """Centres of another embedder's size are left out."""
    usable = [
        cluster
        for cluster in clusters.values()
        if cluster.centroid and len(cluster.centroid) == 4 * dimensions
    ]
    owners = [surviving(clusters, cluster) for cluster in usable]
    centroids = [np.frombuffer(cluster.centroid or b"", dtype=np.float32) for cluster in usable]
    reach: dict[int, float] = {}
    for owner, cluster in zip(owners, usable, strict=True):
        if cluster.reach is not None:
            reach[owner.pk] = min(reach.get(owner.pk, 2.0), cluster.reach)
    table = np.stack(centroids) if centroids else np.zeros((0, dimensions), dtype=np.float32)
    return Reach(np.array([owner.pk for owner in owners], dtype=np.int64), table, reach)


def _read_members(model: str, vectors: Vectors, reach: Reach) -> tuple[NDArray[np.int64], Vectors]:
    """The members of the clusters whose centres are nearest to any of the vectors."""
    if not len(reach.clusters):
        return np.zeros(0, dtype=np.int64), vectors[:0]
    nearest = np.argsort(-(vectors @ reach.centroids.T), axis=1, kind="stable")[:, :CANDIDATES]
    wanted = np.unique(reach.clusters[nearest]).tolist()
    _ids, owners, table = read_member_vectors(model, wanted, COMPARED)
    return owners, table


def _follow_merges(harness: Harness, owners: NDArray[np.int64]) -> NDArray[np.int64]:
    """The clusters that live on of those that people have merged meanwhile."""
    clusters = {cluster.pk: cluster for cluster in Cluster.objects.filter(harness=harness).defer("centroid")}
    living = [
        surviving(clusters, clusters[owner]).pk if owner in clusters else 0 for owner in owners.tolist()
    ]
    return np.array(living, dtype=np.int64)


def _store(
    actor: Actor, ids: NDArray[np.int64], owners: NDArray[np.int64], strengths: NDArray[np.float32]
) -> int:
    """Write where the failures belong, and what it makes of the clusters; returns the number of these."""
    store_members(ids, np.zeros_like(ids), owners, strengths)
    filled = Cluster.objects.filter(pk__in=np.unique(owners[owners > 0]).tolist()).defer("centroid").in_bulk()
    for pk, cluster in sorted(filled.items()):
        own = ids[owners == pk].tolist()
        reason = _("nearest to its failures, and within its reach")
        record(actor, "cluster.failures_assigned", cluster, reason, count=len(own), cases=own[:NAMED])
    ignore_arrivals(actor, {pk: ids[owners == pk].tolist() for pk in filled})
    settle_states(actor, filled)
    escalate(actor, filled)
    return len(filled)
