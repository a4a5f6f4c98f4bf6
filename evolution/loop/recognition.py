"""Recognises the clusters of last time in new groups, by shared members first, then by centre. Decides, writes nothing.

A cluster that people made of several may be found in several groups; any other in one.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# How much of the smaller side a group and a cluster must share to be the same.
SAME_MEMBERS = 0.5
# Cosine of the centroids above which they are the same although no member is shared.
SAME_CENTROID = 0.85

Centroid = NDArray[np.float32]


class Origin(StrEnum):
    """How a group came to be the cluster that it is."""

    MEMBERS = "members"
    CENTROID = "centroid"
    # another group is this cluster too, because people have merged clusters
    MERGED = "merged"
    # only what people have put there
    PEOPLE = "people"
    NEW = "new"


@dataclass(frozen=True)
class Known:
    """A cluster of last time, as far as it helps to recognise it."""

    number: int
    # ids of its open failures
    members: frozenset[int]
    centroid: Centroid | None
    # people have merged clusters into it: more than one group may be it
    is_merged: bool = False


class Found(NamedTuple):
    """The cluster that a group is."""

    number: int
    origin: Origin


def recognise(groups: Sequence[tuple[frozenset[int], Centroid]], known: Sequence[Known]) -> dict[int, Found]:
    """Return the cluster of each group that is one, by the group's index; the best pairs are taken first.

    A number may stand in `known` several times: with its own centre, and with those of what was merged into it.
    """
    found: dict[int, Found] = {}
    merged = {cluster.number for cluster in known if cluster.is_merged}
    taken: set[int] = set()
    pairs = [(pair, Origin.MEMBERS) for pair in sorted(_sharing(groups, known))]
    pairs += [(pair, Origin.CENTROID) for pair in sorted(_near(groups, known))]
    for (_weight, number, index), origin in pairs:
        if index in found or (number in taken and number not in merged):
            continue
        found[index] = Found(number, Origin.MERGED if number in taken else origin)
        taken.add(number)
    return found


def _sharing(
    groups: Sequence[tuple[frozenset[int], Centroid]], known: Sequence[Known]
) -> Iterator[tuple[float, int, int]]:
    owner = {member: cluster.number for cluster in known for member in cluster.members}
    sizes = Counter(owner.values())
    for index, (members, _centroid) in enumerate(groups):
        counts = Counter(owner[member] for member in members if member in owner)
        for number, common in counts.items():
            if common >= SAME_MEMBERS * min(len(members), sizes[number]):
                yield -common, number, index


def _near(
    groups: Sequence[tuple[frozenset[int], Centroid]], known: Sequence[Known]
) -> Iterator[tuple[float, int, int]]:
    for index, (_members, centroid) in enumerate(groups):
        for cluster in known:
            if cluster.centroid is None or cluster.centroid.shape != centroid.shape:
                continue
            cosine = float(cluster.centroid @ centroid)
            if cosine >= SAME_CENTROID:
                yield -cosine, cluster.number, index
