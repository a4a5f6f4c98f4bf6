"""What a clustering makes of the failures, before it is written: groups, their centres, how far they reach."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evolution.loop.recognition import Centroid, Origin
from evolution.models import Cluster
from evolution.ports import Vectors

Ids = NDArray[np.int64]

# Share of the members that may be farther out than a cluster reaches.
OUTLYING = 0.01
# Members were there when the centre was computed, a new failure was not: it stands farther out.
BEYOND = 0.1


@dataclass
class Group:
    """The failures of one cluster after a clustering."""

    # rows of the clustering
    rows: Ids
    centroid: Centroid
    reach: float
    # by row of `rows`, 0-1
    strengths: NDArray[np.float32]
    origin: Origin
    # of a new cluster
    name: str = ""


@dataclass
class Change:
    """What becomes of the failures, a row each."""

    ids: Ids
    # ids of clusters, 0 for none
    before: Ids
    # ids of clusters, 0 for none, negative for those to be made
    owners: Ids
    groups: dict[int, Group]
    # by id, those that there were
    clusters: dict[int, Cluster]
    # by owner, once stored
    filled: dict[int, Cluster] = field(default_factory=dict)


def centroid_of(vectors: Vectors) -> Centroid:
    """The mean of unit vectors, as a unit vector."""
    mean: Centroid = vectors.mean(axis=0).astype(np.float32)
    length = np.float32(np.linalg.norm(mean))
    return mean / length if length else mean


def build_group(rows: Ids, vectors: Vectors, origin: Origin) -> Group:
    """A group of these rows: its centre, and how near a new failure must be to it."""
    centroid = centroid_of(vectors)
    cosines = (vectors @ centroid).clip(0, 1)
    return Group(rows, centroid, reach_of(cosines), cosines.round(3), origin)


def join_groups(one: Group, other: Group) -> Group:
    """Two groups as one; its centre and strengths are near the truth, without the vectors."""
    share = len(other.rows) / (len(one.rows) + len(other.rows))
    centroid = centroid_of(np.stack([one.centroid * (1 - share), other.centroid * share]))
    rows = np.concatenate([one.rows, other.rows])
    strengths = np.concatenate([one.strengths, other.strengths])
    return Group(rows, centroid, min(one.reach, other.reach), strengths, Origin.MERGED)


def reach_of(cosines: NDArray[np.float32]) -> float:
    """The cosine with the centre that nearly all members have, less some for what has not been seen yet."""
    return float(np.quantile(cosines, OUTLYING)) - BEYOND


def surviving(clusters: dict[int, Cluster], cluster: Cluster) -> Cluster:
    """The cluster that a merged one lives on in; itself when it was not merged."""
    seen: set[int] = set()
    while cluster.merged_into_id in clusters and cluster.pk not in seen:
        seen.add(cluster.pk)
        cluster = clusters[cluster.merged_into_id]
    return cluster
