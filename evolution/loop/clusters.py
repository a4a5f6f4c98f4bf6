"""Stage 2: the open failures of a harness are embedded, grouped, and recognised as the clusters of last time.

Writes memberships, centroids and new clusters. States stay as they are, but for a resolved cluster that
failures come back to. What a cluster means is the next stage's business.
"""

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from django.db import transaction
from django.db.models import Max
from numpy.typing import NDArray

from evolution.actors import Actor
from evolution.loop.failure_text import build_failure_text, describe_failure
from evolution.loop.jobs import Progress
from evolution.loop.naming import name_clusters
from evolution.models import Cluster, Embedding, FailureCase, Harness
from evolution.ports import Clusterer, Embedder, Grouping, Vectors
from evolution.states import CaseState, ClusterState, Split, is_allowed
from evolution.transitions import move, record

# Texts that are embedded and stored together.
CHUNK = 512
# How much of the smaller side a group and a cluster must share to be the same.
SAME_MEMBERS = 0.5
# Cosine of the centroids above which they are the same although no member is shared.
SAME_CENTROID = 0.85

Centroid = NDArray[np.float32]


@dataclass
class Group:
    """One group that the clusterer found."""

    members: list[FailureCase]
    centroid: Centroid
    name: str
    strengths: dict[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Known:
    """A cluster of last time, as far as it helps to recognise it."""

    number: int
    # ids of its open failures
    members: frozenset[int]
    centroid: Centroid | None


def cluster_failures(
    actor: Actor, harness: Harness, embedder: Embedder, clusterer: Clusterer, progress: Progress
) -> dict[str, Any]:
    """Group the open failures; returns {"cases", "clusters", "unclustered", "parameters"}.

    The same failures give the same clusters, however often it runs.
    """
    opened = FailureCase.objects.filter(harness=harness, state=CaseState.OPEN)
    cases = list(opened.select_related("dataset_case").order_by("pk"))
    for case in cases:
        case.embedded_text = build_failure_text(case)
    vectors = embed_texts(embedder, [case.embedded_text for case in cases], progress)
    progress(len(cases), len(cases), "grouping")
    grouping = clusterer.group(vectors) if cases else Grouping([], [], {})
    groups = _build_groups(cases, vectors, grouping)
    with transaction.atomic():
        Harness.objects.select_for_update(no_key=True).get(pk=harness.pk)
        _store(actor, harness, cases, groups)
        clustered = sum(len(group.members) for group in groups)
        figures = {"cases": len(cases), "clusters": len(groups), "unclustered": len(cases) - clustered}
        record(actor, "harness.clustered", harness, "", **figures)
    return {**figures, "parameters": {**grouping.parameters, "embedder": embedder.name}}


def embed_texts(embedder: Embedder, texts: Sequence[str], progress: Progress) -> Vectors:
    """Return one vector per text; each text is computed once per model, and kept."""
    by_digest = {hashlib.sha256(text.encode()).hexdigest(): text for text in texts}
    vectors: dict[str, Vectors] = {}
    digests = list(by_digest)
    for start in range(0, len(digests), 5000):
        stored = Embedding.objects.filter(model=embedder.name, digest__in=digests[start : start + 5000])
        vectors |= {row.digest: np.frombuffer(row.vector, dtype=np.float32) for row in stored}
    # In the order of the texts, so that batches do not depend on the order of the cases.
    missing = sorted((digest for digest in digests if digest not in vectors), key=by_digest.__getitem__)
    for start in range(0, len(missing), CHUNK):
        progress(start, len(missing), "embedding")
        chunk = missing[start : start + CHUNK]
        made = embedder.embed([by_digest[digest] for digest in chunk])
        vectors |= dict(zip(chunk, made, strict=True))
        Embedding.objects.bulk_create(
            [
                Embedding(model=embedder.name, digest=digest, vector=vectors[digest].tobytes())
                for digest in chunk
            ],
            ignore_conflicts=True,
        )
    rows = [vectors[hashlib.sha256(text.encode()).hexdigest()] for text in texts]
    return np.stack(rows) if rows else np.zeros((0, 1), dtype=np.float32)


def recognise(groups: Sequence[tuple[frozenset[int], Centroid]], known: Sequence[Known]) -> dict[int, int]:
    """Return group index -> number of the cluster it is: by shared members first, then by centroid.

    Each cluster and each group is used once; the best pairs are taken first.
    """
    shared = []
    near = []
    for index, (members, centroid) in enumerate(groups):
        for cluster in known:
            common = len(members & cluster.members)
            smaller = min(len(members), len(cluster.members))
            if common and common >= SAME_MEMBERS * smaller:
                shared.append((-common, cluster.number, index))
            if cluster.centroid is not None and cluster.centroid.shape == centroid.shape:
                cosine = float(cluster.centroid @ centroid)
                if cosine >= SAME_CENTROID:
                    near.append((-cosine, cluster.number, index))
    found: dict[int, int] = {}
    for _weight, number, index in [*sorted(shared), *sorted(near)]:
        if index not in found and number not in found.values():
            found[index] = number
    return found


def _build_groups(cases: Sequence[FailureCase], vectors: Vectors, grouping: Grouping) -> list[Group]:
    rows: dict[int, list[int]] = defaultdict(list)
    for row, label in enumerate(grouping.labels):
        if label >= 0:
            rows[label].append(row)
    names = name_clusters([_nameable_text(case) for case in cases], grouping.labels)
    return [
        Group(
            members=[cases[row] for row in rows[label]],
            centroid=_centroid(vectors[rows[label]]),
            name=names[label] or cases[rows[label][0]].title,
            strengths={cases[row].pk: grouping.strengths[row] for row in rows[label]},
        )
        for label in sorted(rows)
    ]


def _nameable_text(case: FailureCase) -> str:
    """A cluster's name goes to the model, so guard cases lend it no words."""
    if not is_visible_to_models(case):
        return ""
    return describe_failure(case) if case.findings else case.embedded_text


def is_visible_to_models(case: FailureCase) -> bool:
    """Say whether diagnoser and editor may see it: no guard, sealed or calibration case."""
    return case.dataset_case is None or case.dataset_case.split == Split.DEV


def _centroid(vectors: Vectors) -> Centroid:
    mean: Centroid = vectors.mean(axis=0).astype(np.float32)
    length = np.float32(np.linalg.norm(mean))
    return mean / length if length else mean


def _store(actor: Actor, harness: Harness, cases: Sequence[FailureCase], groups: Sequence[Group]) -> None:
    clusters = {cluster.number: cluster for cluster in Cluster.objects.filter(harness=harness)}
    found = recognise(
        [(frozenset(case.pk for case in group.members), group.centroid) for group in groups],
        _known(clusters, cases),
    )
    next_number = (Cluster.objects.filter(harness=harness).aggregate(last=Max("number"))["last"] or 0) + 1
    new = [index for index in range(len(groups)) if index not in found]
    created = [
        Cluster(harness=harness, number=next_number + place, name=groups[index].name[:200])
        for place, index in enumerate(new)
    ]
    Cluster.objects.bulk_create(created)
    owners = {index: clusters[number] for index, number in found.items()} | dict(
        zip(new, created, strict=True)
    )
    for index, cluster in owners.items():
        cluster.centroid = groups[index].centroid.tobytes()
    Cluster.objects.bulk_update(owners.values(), ["centroid"])
    _store_members(cases, groups, owners)
    _store_states(actor, clusters.values(), {cluster.pk for cluster in owners.values()})


def _known(clusters: dict[int, Cluster], cases: Sequence[FailureCase]) -> list[Known]:
    members: dict[int | None, set[int]] = defaultdict(set)
    for case in cases:
        members[case.cluster_id].add(case.pk)
    return [
        Known(
            number,
            frozenset(members[cluster.pk]),
            np.frombuffer(cluster.centroid, dtype=np.float32) if cluster.centroid else None,
        )
        for number, cluster in sorted(clusters.items())
    ]


def _store_members(cases: Sequence[FailureCase], groups: Sequence[Group], owners: dict[int, Cluster]) -> None:
    for case in cases:
        case.cluster, case.strength = None, None
    for index, group in enumerate(groups):
        for case in group.members:
            case.cluster, case.strength = owners[index], group.strengths[case.pk]
    FailureCase.objects.bulk_update(cases, ["cluster", "strength", "embedded_text"], batch_size=500)


def _store_states(actor: Actor, before: Any, filled: set[int]) -> None:
    """A resolved cluster with open failures has regressed; one with resolved failures only is resolved."""
    resolved = set(
        FailureCase.objects.filter(cluster__in=[cluster.pk for cluster in before], state=CaseState.RESOLVED)
        .order_by()
        .values_list("cluster_id", flat=True)
        .distinct()
    )
    for cluster in before:
        if cluster.pk in filled and cluster.state == ClusterState.RESOLVED:
            move(cluster, ClusterState.REGRESSED, actor, "failures came back")
            continue
        is_over = cluster.pk in resolved and cluster.pk not in filled
        if is_over and is_allowed(ClusterState(cluster.state), ClusterState.RESOLVED):
            move(cluster, ClusterState.RESOLVED, actor, "all its failures are resolved")
