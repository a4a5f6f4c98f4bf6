"""What people have decided about clusters steers later groupings: pinned failures stay, and draw what is like them.

Decides on arrays of rows; writes nothing.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evolution.ports import Vectors

Ids = NDArray[np.int64]
Flags = NDArray[np.bool_]

# "In no cluster", where ids of clusters are positive and new groups have negative numbers.
NOWHERE = 0


def steer(owners: Ids, before: Ids, pinned: Flags, texts: Sequence[str], vectors: Vectors) -> Ids:
    """Return the owner of each row after people's decisions; arguments are by row.

    `owners` are those of the groups, `before` the clusters of last time. Pinned rows stay where they were. A group
    with pinned rows that is of several clusters is divided, for people have told these apart: what was in one of
    them stays there, and each new row goes with the nearest of which it is known where it belongs. Rows with the text
    of a pinned one are where that is.
    """
    steered = np.where(pinned, before, owners)
    for owner in np.unique(owners[owners != NOWHERE]):
        rows = np.flatnonzero(owners == owner)
        pins = pinned[rows] & (before[rows] != NOWHERE)
        strangers = (before[rows] != owner) & (before[rows] != NOWHERE)
        if (pins & strangers).any() or (owner > NOWHERE and pins.any() and strangers.any()):
            steered[rows] = _divide(int(owner), rows, before, pinned, vectors)
    places = {texts[row]: before[row] for row in np.flatnonzero(pinned)[::-1].tolist()}
    if places:
        for row in np.flatnonzero(~pinned).tolist():
            steered[row] = places.get(texts[row], steered[row])
    return steered


def _divide(owner: int, rows: Ids, before: Ids, pinned: Flags, vectors: Vectors) -> Ids:
    """Each row's cluster is that of the nearest row that is pinned, or that a cluster had before."""
    # Pinned ones first: they win where another is as near.
    pins = rows[pinned[rows] & (before[rows] != NOWHERE)]
    # A group that is no known cluster may have grown out of one that it shares no pin with.
    known = ~pinned[rows] & (before[rows] != NOWHERE) & (owner > NOWHERE)
    anchors = np.concatenate([pins, rows[known]])
    if len(np.unique(before[anchors])) < 2:
        # Nothing is known of the owner: it is new, and a few pinned rows do not take all of it.
        return np.where(pinned[rows], before[rows], owner)
    nearest = anchors[(vectors[rows] @ vectors[anchors].T).argmax(axis=1)]
    return np.where(pinned[rows] | known, before[rows], before[nearest])
