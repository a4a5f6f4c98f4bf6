"""The map of a clustering: where its failures stand, and which cluster each is in now or was in then."""

from dataclasses import dataclass

import numpy as np
from django.db.models import F
from django.db.models.functions import Left
from numpy.typing import NDArray

from evolution.loop.cluster_runs import read_ids, read_points
from evolution.models import Cluster, ClusterRun, FailureCase
from evolution.queries.cluster_runs import read_owners
from evolution.states import CaseState

# Of a title, for the label at the pointer.
TITLE = 60


@dataclass(frozen=True)
class MapCluster:
    """A cluster on the map: how many of the points it has, and the middle of them."""

    number: int
    name: str
    size: int
    x: float
    y: float


@dataclass(frozen=True)
class ClusterMap:
    """The failures of a clustering that are still open, a point each; coordinates are within [-1, 1]."""

    ids: list[int]
    x: list[float]
    y: list[float]
    titles: list[str]
    # by point, the place in `clusters`; -1 for none
    owners: list[int]
    # the largest first
    clusters: list[MapCluster]


def draw_map(run: ClusterRun, *, as_it_was: bool = False) -> ClusterMap:
    """The map of a clustering, with the clusters that the failures are in now, or were in at its end."""
    ids, places = read_points(run)
    cases = _read_cases(run, ids)
    order = np.array([row for row, pk in enumerate(ids.tolist()) if pk in cases], dtype=np.int64)
    kept = ids[order].tolist()
    owners = read_owners(run)[order].tolist() if as_it_was else [cases[pk][1] for pk in kept]
    x, y = (places[order, axis].round(4).tolist() for axis in (0, 1))
    clusters = _read_clusters(owners, places[order])
    by_id = {pk: place for place, (pk, _cluster) in enumerate(clusters)}
    return ClusterMap(
        ids=kept,
        x=x,
        y=y,
        titles=[cases[pk][0] for pk in kept],
        owners=[by_id.get(owner, -1) for owner in owners],
        clusters=[cluster for _pk, cluster in clusters],
    )


def count_off_map(run: ClusterRun) -> int:
    """How many open failures are not on the map of a clustering: they came since, or were opened again."""
    is_open = FailureCase.objects.filter(harness=run.harness_id, state=CaseState.OPEN).order_by()
    now = np.fromiter(is_open.values_list("pk", flat=True).iterator(), dtype=np.int64)
    return len(np.setdiff1d(now, read_ids(run.point_ids)))


def _read_cases(run: ClusterRun, ids: NDArray[np.int64]) -> dict[int, tuple[str, int]]:
    """Title and cluster of the failures that are still open, by id."""
    if not len(ids):
        return {}
    # Between the first and the last: a query that names fifty thousand takes longer than the few rows too many.
    cases = FailureCase.objects.filter(
        harness=run.harness_id, state=CaseState.OPEN, pk__range=(ids[0], ids[-1])
    )
    rows = cases.order_by().values_list("pk", Left("title", TITLE), F("cluster_id"))
    return {pk: (title, owner or 0) for pk, title, owner in rows}


def _read_clusters(owners: list[int], places: NDArray[np.float32]) -> list[tuple[int, MapCluster]]:
    table = np.array(owners, dtype=np.int64)
    present, rows, counts = np.unique(table, return_inverse=True, return_counts=True)
    sums = np.zeros((len(present), 2))
    np.add.at(sums, rows, places)
    found = Cluster.objects.only("number", "name").in_bulk(present[present > 0].tolist())
    clusters = [
        (int(pk), _map_cluster(found[int(pk)], int(count), total / count))
        for pk, count, total in zip(present, counts, sums, strict=True)
        if int(pk) in found
    ]
    return sorted(clusters, key=lambda entry: (-entry[1].size, entry[1].number))


def _map_cluster(cluster: Cluster, size: int, middle: NDArray[np.float64]) -> MapCluster:
    x, y = middle.round(4).tolist()
    return MapCluster(cluster.number, cluster.name, size, x, y)
