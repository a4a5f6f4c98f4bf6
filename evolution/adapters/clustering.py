"""The clusterer: HDBSCAN on few dimensions of a nearest-neighbour graph; what it splits too finely is joined again.

Density in the 512 dimensions of the embedder says little (measured: ARI 0.2); in the graph's leading eigenvectors it
does, but no one threshold suits dense and loose groups. So HDBSCAN finds many small groups, and groups that are tied
by more neighbours than chance join (see `joining`). Everything is deterministic.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolution.adapters.joining import (
    NOISE,
    Floats,
    Labels,
    Partition,
    cluster_centres,
    join_groups,
    join_near_identical,
    separation,
)
from evolution.adapters.neighbours import neighbour_graph, principal_components
from evolution.adapters.spectral import spectral_embedding
from evolution.adapters.staying import is_clearly_better, keep_known
from evolution.ports import Grouping, Vectors

# Up to here the graph has too few nodes for its eigenvectors to mean anything; HDBSCAN sees the vectors then.
SMALL = 14
COMPONENTS = 128
# Neighbours of a row and dimensions of the spectral embedding, on few and on many rows.
FEWEST_NEIGHBOURS, MOST_NEIGHBOURS = 5, 15
FEWEST_DIMENSIONS, MOST_DIMENSIONS = 3, 96
ROWS_PER_DIMENSION = 8
# Smallest group of HDBSCAN, on few and on many rows.
FEWEST_MEMBERS, MOST_MEMBERS = 3, 8
# Edges of the graph that are measured at once.
_EDGES = 100_000
# Clusters whose centres are closer than this say the same.
SAME = 0.95
# Rows that HDBSCAN left out belong to a cluster when they are as near to its centre as all but this share of it.
OUTLYING = 0.01


@dataclass(frozen=True)
class HdbscanClusterer:
    """Groups unit vectors; `min_cluster_size` overrides the choice by data size."""

    min_cluster_size: int | None = None

    def group(self, vectors: Vectors, known: Sequence[int] | None = None) -> Grouping:
        """Return one label per row, -1 for none; equal rows share their label.

        Labels are numbered by first appearance. A strength is the cosine with the cluster's centre. Fewer rows than
        the smallest cluster: all are -1. Groups that are `known` stay unless a fresh grouping of the same rows is
        clearly better separated.
        """
        distinct, copies = _distinct_rows(vectors)
        before = np.array([_most_common(known, rows) for rows in copies] if known else [], dtype=np.int64)
        smallest = self.min_cluster_size or choose_min_cluster_size(len(distinct))
        parameters: dict[str, Any] = {"min_cluster_size": smallest}
        labels = np.full(len(distinct), NOISE)
        if len(distinct) > max(SMALL, smallest):
            labels = _group_many(distinct, copies, before, parameters)
        elif len(distinct):
            labels = _group_few(distinct, copies, before, parameters)
        labels = join_near_identical(distinct, labels, SAME)
        return _for_all_rows(len(vectors), labels, _strengths(distinct, labels), copies, parameters)


def choose_min_cluster_size(rows: int) -> int:
    """The smallest group of HDBSCAN: 3, and a fifth of the root of the rows on larger data, up to 8."""
    return max(FEWEST_MEMBERS, min(MOST_MEMBERS, round(math.sqrt(rows) / 5)))


def build_clusterer() -> HdbscanClusterer:
    """Build the clusterer with what the data chooses."""
    return HdbscanClusterer()


def _group_few(
    vectors: Floats, copies: list[list[int]], before: Labels, parameters: dict[str, Any]
) -> Labels:
    parameters |= {"space": "vectors", "min_samples": 1}
    smallest = parameters["min_cluster_size"]
    labels = np.full(len(vectors), NOISE)
    if len(vectors) >= smallest:
        labels = _hdbscan(vectors.astype(np.float64), parameters, metric="euclidean")
    fresh = _with_copies(labels, copies, smallest)
    if before.max(initial=NOISE) < 0:
        return fresh
    kept = keep_known(vectors, fresh, before, smallest)
    parameters["kept"] = not is_clearly_better(vectors, fresh, kept, before)
    return kept if parameters["kept"] else fresh


def _group_many(
    vectors: Floats, copies: list[list[int]], before: Labels, parameters: dict[str, Any]
) -> Labels:
    rows = len(vectors)
    neighbours = max(FEWEST_NEIGHBOURS, min(MOST_NEIGHBOURS, round(math.sqrt(rows / 2))))
    dimensions = max(FEWEST_DIMENSIONS, min(MOST_DIMENSIONS, rows // ROWS_PER_DIMENSION))
    graph = neighbour_graph(principal_components(vectors, COMPONENTS), neighbours)
    parameters |= {"space": "spectral", "neighbours": neighbours, "dimensions": dimensions}
    parameters["min_samples"] = max(1, parameters["min_cluster_size"] // 2)
    core = _dense_groups(spectral_embedding(graph, dimensions), graph, parameters)
    core = _with_copies(core, copies, parameters["min_cluster_size"])
    smallest = parameters["min_cluster_size"]
    partition, is_kept = _choose_partition(graph, core, vectors, before, smallest)
    parameters |= {
        "groups": int(core.max(initial=NOISE)) + 1,
        "resolution": partition.resolution,
        "separation": round(partition.separation, 4),
        "kept": is_kept,
    }
    # What was in a cluster is not left out for standing at its edge.
    stays = core >= 0
    if is_kept:
        stays |= before >= 0
    return _without_outliers(vectors, partition.labels, core, stays)


def _choose_partition(
    graph: Any, core: Labels, vectors: Floats, before: Labels, smallest: int
) -> tuple[Partition, bool]:
    """The partition that keeps the known clusters, or a fresh one where that is clearly better separated."""
    fresh = join_groups(graph, core, vectors)
    if before.max(initial=NOISE) < 0:
        return fresh, False
    groups = range(int(core.max(initial=NOISE)) + 1)
    anchors = [_most_common(before, np.flatnonzero(core == group)) for group in groups]
    joined = join_groups(graph, core, vectors, anchors)
    labels = keep_known(vectors, joined.labels, before, smallest)
    if is_clearly_better(vectors, fresh.labels, labels, before):
        return fresh, False
    return Partition(labels, joined.resolution, *separation(vectors, labels)), True


def _most_common(labels: Sequence[int] | Labels, rows: Iterable[int]) -> int:
    """The label that most of the rows have, the smallest of several; -1 when none has one."""
    counts = Counter(label for row in rows if (label := int(labels[row])) >= 0)
    return min(counts, key=lambda label: (-counts[label], label), default=NOISE)


def _dense_groups(points: Any, graph: Any, parameters: dict[str, Any]) -> Labels:
    """HDBSCAN on the graph's edges: what is dense is there, and all pairs would be too many."""
    return _hdbscan(_edge_lengths(points, graph), parameters, metric="precomputed")


def _edge_lengths(points: Any, graph: Any) -> Any:
    """How far apart neighbours of the graph are; parts that are apart are tied by edges longer than any other."""
    from scipy.sparse import csr_matrix  # noqa: PLC0415  heavy
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    rows, columns = graph.nonzero()
    lengths = np.concatenate(
        [
            np.linalg.norm(
                points[rows[start : start + _EDGES]] - points[columns[start : start + _EDGES]], axis=1
            )
            for start in range(0, len(rows), _EDGES)
        ]
    )
    edges = csr_matrix((np.maximum(lengths, 1e-9), (rows, columns)), shape=graph.shape)
    parts = np.unique(connected_components(edges, directed=False)[1], return_index=True)[1]
    # The points lie on the unit sphere.
    ties = csr_matrix((np.full(len(parts) - 1, 4.0), (parts[:-1], parts[1:])), shape=graph.shape)
    return (edges + ties + ties.T).tocsr()


def _hdbscan(points: Any, parameters: dict[str, Any], metric: str) -> Labels:
    from hdbscan import HDBSCAN  # noqa: PLC0415  heavy

    parameters["selection"] = "leaf"
    model = HDBSCAN(
        metric=metric,
        min_cluster_size=parameters["min_cluster_size"],
        min_samples=parameters["min_samples"],
        cluster_selection_method=parameters["selection"],
        core_dist_n_jobs=1,
    ).fit(points)
    return np.asarray(model.labels_, dtype=np.int64)


def _with_copies(labels: Labels, copies: list[list[int]], smallest: int) -> Labels:
    """Enough equal rows are a group of their own where HDBSCAN saw one row in none."""
    labels = labels.copy()
    for number, places in enumerate(copies):
        if labels[number] == NOISE and len(places) >= smallest:
            labels[number] = labels.max() + 1
    return labels


def _without_outliers(vectors: Floats, labels: Labels, core: Labels, stays: NDArray[np.bool_]) -> Labels:
    """Leave out what is farther from its cluster than nearly all of the dense part, but for what `stays`."""
    centres = cluster_centres(vectors, labels)
    cosines = np.einsum("ij,ij->i", vectors, centres[labels])
    kept = labels.copy()
    for label in range(len(centres)):
        own = labels == label
        dense = cosines[own & (core >= 0)]
        reach = np.quantile(dense, OUTLYING) if len(dense) else -1.0
        kept[own & ~stays & (cosines < reach)] = NOISE
    return kept


def _strengths(vectors: Floats, labels: Labels) -> Floats:
    strengths = np.zeros(len(vectors), dtype=np.float32)
    own = labels >= 0
    centres = cluster_centres(vectors, labels)
    strengths[own] = np.einsum("ij,ij->i", vectors[own], centres[labels[own]]).clip(0, 1)
    return strengths


def _distinct_rows(vectors: Vectors) -> tuple[Floats, list[list[int]]]:
    """The distinct rows in order of first appearance, and where each of them stands."""
    places: dict[bytes, list[int]] = defaultdict(list)
    for row, vector in enumerate(np.ascontiguousarray(vectors)):
        places[vector.tobytes()].append(row)
    copies = list(places.values())
    return np.asarray(vectors[[rows[0] for rows in copies]], dtype=np.float32), copies


def _for_all_rows(
    rows: int, labels: Labels, strengths: Floats, copies: list[list[int]], parameters: dict[str, Any]
) -> Grouping:
    """Spread the labels over equal rows."""
    all_labels, all_strengths = [NOISE] * rows, [0.0] * rows
    for number, places in enumerate(copies):
        for row in places:
            all_labels[row], all_strengths[row] = int(labels[number]), float(strengths[number])
    return Grouping(all_labels, all_strengths, parameters)
