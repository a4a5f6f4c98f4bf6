"""From many small groups to clusters: rows between groups go with their neighbours, and groups that are tied join.

How readily groups join is chosen for the data: of several partitions the coarsest among the best separated.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Labels = NDArray[np.int64]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

NOISE = -1
# Resolutions of modularity, from few large clusters to many small ones.
RESOLUTIONS = (1.0, 2.0, 4.0, 8.0)
# A finer partition has to be better separated by this much, and by this many standard errors: few rows say little.
WORTH = 0.015
ERRORS = 2
# Steps from neighbour to neighbour by which a row finds a group.
_STEPS = 20


@dataclass(frozen=True)
class Partition:
    """A partition of all rows that have a way to a group."""

    labels: Labels
    resolution: float
    # mean simplified silhouette, -1 to 1, and its standard error
    separation: float
    error: float = 0.0


def join_groups(
    graph: Any, labels: Labels, vectors: Floats, anchors: Sequence[int] | None = None
) -> Partition:
    """Return the best partition that comes of joining the groups; rows without a way to a group stay -1.

    `vectors` are unit vectors. Groups with the same anchor (-1 is none) are together whatever their ties, and groups
    with two anchors never join. One group, or none, stays as it is.
    """
    reached = _follow_neighbours(graph, labels)
    if reached.max(initial=NOISE) < 1:
        return Partition(reached, RESOLUTIONS[0], 0.0)
    blocks, is_anchored = _blocks(reached, anchors)
    ties = _ties(graph, blocks)
    found = []
    for resolution in RESOLUTIONS:
        owner = _join_by_modularity(ties, resolution, is_anchored)
        joined = np.where(blocks >= 0, owner[blocks], NOISE)
        found.append(Partition(joined, resolution, *separation(vectors, joined)))
    best = max(found, key=lambda partition: partition.separation)
    enough = best.separation - max(WORTH, ERRORS * best.error)
    return next(partition for partition in found if partition.separation >= enough)


def _blocks(labels: Labels, anchors: Sequence[int] | None) -> tuple[Labels, NDArray[np.bool_]]:
    """The labels with groups of one anchor as one, and which of these have an anchor."""
    count = int(labels.max(initial=NOISE)) + 1
    if anchors is None:
        return labels, np.zeros(count, dtype=bool)
    keys = [(anchor, -1) if anchor >= 0 else (-1, group) for group, anchor in enumerate(anchors)]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    owner = np.array([numbers[key] for key in keys], dtype=np.int64)
    return np.where(labels >= 0, owner[labels], NOISE), np.array([key[0] >= 0 for key in numbers])


def separation(vectors: Floats, labels: Labels) -> tuple[float, float]:
    """Mean simplified silhouette of the rows in clusters, -1 to 1, and its standard error. One cluster alone has 0."""
    rows = np.flatnonzero(labels >= 0)
    if len(np.unique(labels[rows])) < 2:
        return 0.0, 0.0
    widths = silhouettes(vectors, labels, rows)
    return float(widths.mean()), float(widths.std() / np.sqrt(len(rows)))


def silhouettes(vectors: Floats, labels: Labels, rows: Labels) -> Floats:
    """The simplified silhouettes of rows that are in clusters, by cosine distance to the clusters' centres, -1 to 1.

    Hruschka, de Castro and Campello, "Evolutionary algorithms for clustering gene-expression data", 2004.
    """
    centres = cluster_centres(vectors, labels)
    if len(centres) < 2:
        return np.zeros(len(rows), dtype=np.float32)
    own = labels[rows]
    distances = 1 - vectors[rows] @ centres.T
    place = np.arange(len(rows))
    to_own = distances[place, own].copy()
    distances[place, own] = np.inf
    to_next = distances.min(axis=1)
    widths: Floats = (to_next - to_own) / np.maximum(np.maximum(to_own, to_next), 1e-9)
    return widths


def cluster_centres(vectors: Floats, labels: Labels) -> Floats:
    """Return the normalised mean of each cluster's rows, shape (clusters, dimensions)."""
    centres = np.zeros((int(labels.max(initial=NOISE)) + 1, vectors.shape[1]))
    rows = labels >= 0
    np.add.at(centres, labels[rows], vectors[rows])
    lengths = np.maximum(np.linalg.norm(centres, axis=1, keepdims=True), 1e-12)
    return np.asarray(centres / lengths, dtype=np.float32)


def join_near_identical(vectors: Floats, labels: Labels, cosine: float) -> Labels:
    """Join clusters whose centres are that close, and number them by first appearance."""
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415  heavy

    if labels.max(initial=NOISE) < 0:
        return labels
    centres = cluster_centres(vectors, labels)
    owner = connected_components(centres @ centres.T >= cosine, directed=False)[1]
    joined = np.where(labels >= 0, owner[labels], NOISE)
    seen = dict.fromkeys(joined[joined >= 0].tolist())
    numbers = {label: number for number, label in enumerate(seen)} | {NOISE: NOISE}
    return np.array([numbers[label] for label in joined.tolist()], dtype=np.int64)


def _indicator(labels: Labels) -> Any:
    from scipy.sparse import csr_matrix  # noqa: PLC0415  heavy

    rows = np.flatnonzero(labels >= 0)
    shape = (len(labels), int(labels.max(initial=NOISE)) + 1)
    return csr_matrix((np.ones(len(rows)), (rows, labels[rows])), shape=shape)


def _follow_neighbours(graph: Any, labels: Labels) -> Labels:
    """Give rows in no group the group that most of their neighbours are in, step by step."""
    labels = labels.copy()
    for _ in range(_STEPS):
        outside = np.flatnonzero(labels < 0)
        if not len(outside) or labels.max(initial=NOISE) < 0:
            break
        pull = (graph[outside] @ _indicator(labels)).tocsr()
        strongest = np.asarray(pull.argmax(axis=1)).ravel()
        has_way = np.asarray(pull.max(axis=1).todense()).ravel() > 0
        if not has_way.any():
            break
        labels[outside[has_way]] = strongest[has_way]
    return labels


def _ties(graph: Any, labels: Labels) -> Doubles:
    """The weight of the edges between groups; each edge inside a group counts twice."""
    indicator = _indicator(labels)
    return np.asarray((indicator.T @ graph @ indicator).toarray(), dtype=np.float64)


def _join_by_modularity(ties: Doubles, resolution: float, is_anchored: NDArray[np.bool_]) -> Labels:
    """Join the two groups that gain most modularity until none gains; returns the cluster of each group.

    Clauset, Newman and Moore, 2004; resolution as in Reichardt and Bornholdt, 2006.
    """
    groups = _Groups(ties, resolution, is_anchored)
    while groups.join_best():
        pass
    return np.asarray(np.unique(groups.owner, return_inverse=True)[1], dtype=np.int64)


class _Groups:
    """Groups while they join; keeps each one's best partner, so that a join costs one row and not the table."""

    def __init__(self, ties: Doubles, resolution: float, is_anchored: NDArray[np.bool_]) -> None:
        self.resolution = resolution
        self.is_anchored = is_anchored.copy()
        self.shares = ties / ties.sum()
        self.degrees = self.shares.sum(axis=1)
        self.owner = np.arange(len(ties))
        self.is_gone = np.zeros(len(ties), dtype=bool)
        self.gains = self.shares - resolution * np.outer(self.degrees, self.degrees)
        np.fill_diagonal(self.gains, -np.inf)
        self.gains[np.outer(is_anchored, is_anchored)] = -np.inf
        self.best = self.gains.argmax(axis=1)
        self.rows = np.arange(len(ties))

    def join_best(self) -> bool:
        """Join the two that gain most; false when no join gains anything."""
        one = int(self.gains[self.rows, self.best].argmax())
        other = int(self.best[one])
        if self.gains[one, other] <= 0:
            return False
        self.owner[self.owner == other] = one
        self.is_gone[other] = True
        self.is_anchored[one] |= self.is_anchored[other]
        self.shares[one] += self.shares[other]
        self.shares[:, one] += self.shares[:, other]
        self.degrees[one] += self.degrees[other]
        self._update(one, other)
        return True

    def _update(self, one: int, other: int) -> None:
        gains = self.shares[one] - self.resolution * self.degrees[one] * self.degrees
        gains[self.is_gone] = gains[one] = -np.inf
        if self.is_anchored[one]:
            gains[self.is_anchored] = -np.inf
        self.gains[one] = self.gains[:, one] = gains
        self.gains[other] = self.gains[:, other] = -np.inf
        stale = np.flatnonzero((self.best == one) | (self.best == other))
        for row in {one, other, *stale.tolist()}:
            self.best[row] = self.gains[row].argmax()
        self.best[self.gains[:, one] > self.gains[self.rows, self.best]] = one
