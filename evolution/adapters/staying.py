"""Clusters that are known stay: a new grouping says where new rows belong, and known rows stay where they were.

Only where a fresh grouping separates the known rows clearly better are known clusters given up.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from evolution.adapters.joining import NOISE, Floats, Labels, cluster_centres, silhouettes

# A fresh grouping has to separate the middle one of the known rows better by this much, on a scale of -1 to 1, to
# undo known clusters.
CLEARLY = 0.15
# New rows that outnumber a known cluster in their group join it when most of them are within its reach: the cosine
# with its centre that all but this share of its rows have, less what new rows stand farther out.
OUTLYING = 0.01
BEYOND = 0.1
# Rows that are compared at once.
_BLOCK = 1000


def keep_known(vectors: Floats, labels: Labels, before: Labels, smallest: int) -> Labels:
    """Return labels in which each known row is where it was, and new rows are where their group says.

    `labels` are those of the new groups, `before` those that are known, -1 for none. A group is the known cluster
    that it shares half of the smaller side with; its new rows go there, and of several such clusters to that of the
    nearest known row. New rows that are left over in a group are a cluster when there are `smallest` of them.
    """
    names = np.unique(before[before >= 0])
    kept = np.where(before >= 0, np.searchsorted(names, before), NOISE)
    sizes = Counter(kept[kept >= 0].tolist())
    reaches = _Reaches(vectors, kept)
    for label in range(int(labels.max(initial=NOISE)) + 1):
        rows = np.flatnonzero(labels == label)
        new = rows[before[rows] < 0]
        for home, count, own in _divide(vectors, rows, new, kept, sizes):
            if 2 * count >= count + len(own) or reaches.holds(home, vectors[own]):
                kept[own] = home
        left = new[kept[new] < 0]
        if len(left) >= smallest:
            kept[left] = len(names) + label
    return _without_gaps(kept)


def is_clearly_better(vectors: Floats, fresh: Labels, kept: Labels, before: Labels) -> bool:
    """Whether the fresh labels separate the known rows so much better than those that keep them."""
    known = np.flatnonzero((before >= 0) & (fresh >= 0) & (kept >= 0))
    if not len(known):
        return False
    gains = silhouettes(vectors, fresh, known) - silhouettes(vectors, kept, known)
    return float(np.median(gains)) > CLEARLY


def _divide(
    vectors: Floats, rows: Labels, new: Labels, kept: Labels, sizes: Mapping[int, int]
) -> Iterator[tuple[int, int, Labels]]:
    """The known clusters that a group is: how many of its rows are there, and the new rows nearest to these."""
    shared = Counter(kept[rows[kept[rows] >= 0]].tolist())
    homes = [home for home, count in sorted(shared.items()) if 2 * count >= min(len(rows), sizes[home])]
    anchors = rows[np.isin(kept[rows], homes)]
    nearest = (
        kept[_nearest(vectors, new, anchors)] if len(homes) > 1 else np.full(len(new), (homes or [NOISE])[0])
    )
    for home in homes:
        yield home, shared[home], new[nearest == home]


class _Reaches:
    """How far the known clusters go."""

    def __init__(self, vectors: Floats, labels: Labels) -> None:
        self.centres = cluster_centres(vectors, labels)
        self.vectors, self.labels = vectors, labels
        self.known: dict[int, float] = {}

    def holds(self, label: int, rows: Floats) -> bool:
        """Whether most of the rows are within the reach of a cluster."""
        if label not in self.known:
            own = self.vectors[self.labels == label] @ self.centres[label]
            self.known[label] = float(np.quantile(own, OUTLYING)) - BEYOND
        return bool(np.median(rows @ self.centres[label]) >= self.known[label]) if len(rows) else True


def _nearest(vectors: Floats, rows: Labels, anchors: Labels) -> Labels:
    """The nearest anchor of each row."""
    found = [
        anchors[(vectors[rows[start : start + _BLOCK]] @ vectors[anchors].T).argmax(axis=1)]
        for start in range(0, len(rows), _BLOCK)
    ]
    return np.concatenate(found) if found else rows


def _without_gaps(labels: Labels) -> Labels:
    numbers: NDArray[np.int64] = np.unique(labels[labels >= 0])
    return np.where(labels >= 0, np.searchsorted(numbers, labels), NOISE)
