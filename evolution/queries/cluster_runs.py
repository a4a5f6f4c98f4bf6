"""The clusterings that are kept, and what became of failures and clusters between two of them."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from evolution.loop.cluster_runs import read_ids
from evolution.models import Cluster, ClusterRun, FailureCase, Harness, RunGroup
from evolution.queries.cases import read_rows

Ids = NDArray[np.int64]

# Owners that are no cluster's id: in the clustering but in no cluster, and not in the clustering.
UNCLUSTERED = 0
ABSENT = -1
SHOWN_CASES = 50


@dataclass(frozen=True)
class Flow:
    """Failures that went from one place to another; a place is a cluster, UNCLUSTERED or ABSENT."""

    # id of the other cluster, or one of the two above
    owner: int
    count: int
    cluster: Cluster | None = None


@dataclass
class Fate:
    """A cluster in two clusterings."""

    cluster: Cluster
    before: int = 0
    after: int = 0
    stayed: int = 0
    # how the later clustering recognised it
    origin: str = ""
    # where its later members were before, and where its earlier members are after; the largest first
    came: list[Flow] = field(default_factory=list)
    went: list[Flow] = field(default_factory=list)

    @property
    def is_new(self) -> bool:
        """Whether the later clustering alone has it."""
        return not self.before

    @property
    def is_gone(self) -> bool:
        """Whether the earlier clustering alone has it."""
        return not self.after


@dataclass(frozen=True)
class RunComparison:
    """Two clusterings of a harness, the earlier one first."""

    before: ClusterRun
    after: ClusterRun
    # failures that both looked at, and those that only one did
    common: int
    came: int
    gone: int
    # of those that both looked at: in the same cluster, in another one, put into one, taken out of one, in none twice
    stayed: int
    moved: int
    joined: int
    left: int
    loose: int
    fates: list[Fate]

    @property
    def kept_share(self) -> float | None:
        """The share of the failures that were in a cluster, and are in it still, 0-1."""
        clustered = self.stayed + self.moved + self.left
        return self.stayed / clustered if clustered else None


def list_runs(harness: Harness) -> QuerySet[ClusterRun]:
    """The clusterings that are kept, the newest first, without maps and members."""
    runs = ClusterRun.objects.filter(harness=harness)
    return runs.defer("points", "point_ids", "unclustered").order_by("-pk")


def read_owners(run: ClusterRun) -> Ids:
    """The cluster of each failure of a clustering, in the order of its ids; UNCLUSTERED for none."""
    ids = read_ids(run.point_ids)
    owners = np.full(len(ids), UNCLUSTERED, dtype=np.int64)
    for cluster, members in run.groups.values_list("cluster_id", "case_ids"):
        rows = np.searchsorted(ids, read_ids(members))
        owners[rows[rows < len(ids)]] = cluster
    return owners


def compare_runs(before: ClusterRun, after: ClusterRun) -> RunComparison:
    """What became of failures and clusters between two clusterings."""
    _ids, first, second = _align(before, after)
    both = (first != ABSENT) & (second != ABSENT)
    was, now = first[both], second[both]
    same = was == now
    return RunComparison(
        before=before,
        after=after,
        common=int(both.sum()),
        came=int((first == ABSENT).sum()),
        gone=int((second == ABSENT).sum()),
        stayed=int((same & (was > 0)).sum()),
        moved=int((~same & (was > 0) & (now > 0)).sum()),
        joined=int(((was == UNCLUSTERED) & (now > 0)).sum()),
        left=int(((was > 0) & (now == UNCLUSTERED)).sum()),
        loose=int((same & (was == UNCLUSTERED)).sum()),
        fates=_fates(after, first, second),
    )


def list_flow(before: ClusterRun, after: ClusterRun, was: int, now: int) -> tuple[list[FailureCase], int]:
    """The newest failures that went from one place to another, and how many went."""
    ids, first, second = _align(before, after)
    chosen = ids[(first == was) & (second == now)]
    return read_rows(chosen[::-1][:SHOWN_CASES].tolist()), len(chosen)


def _align(before: ClusterRun, after: ClusterRun) -> tuple[Ids, Ids, Ids]:
    """The failures of both clusterings, and where each is in one and in the other."""
    first, second = read_ids(before.point_ids), read_ids(after.point_ids)
    ids = np.union1d(first, second)
    places = []
    for own, run in ((first, before), (second, after)):
        owners = np.full(len(ids), ABSENT, dtype=np.int64)
        owners[np.searchsorted(ids, own)] = read_owners(run)
        places.append(owners)
    return ids, places[0], places[1]


def _fates(after: ClusterRun, first: Ids, second: Ids) -> list[Fate]:
    """Every cluster that is in one of the two, the largest first."""
    flows = _count_flows(first, second)
    present = {owner for pair in flows for owner in pair if owner > 0}
    clusters = Cluster.objects.select_related("merged_into").defer("centroid", "merged_into__centroid")
    found = clusters.in_bulk(present)
    origins = dict(RunGroup.objects.filter(run=after).values_list("cluster_id", "origin"))
    fates = {pk: Fate(cluster, origin=origins.get(pk, "")) for pk, cluster in found.items()}
    came: dict[int, list[Flow]] = defaultdict(list)
    went: dict[int, list[Flow]] = defaultdict(list)
    for (was, now), count in sorted(flows.items(), key=lambda entry: (-entry[1], entry[0])):
        _add(fates, was, now, count)
        if was != now:
            came[now].append(Flow(was, count, found.get(was)))
            went[was].append(Flow(now, count, found.get(now)))
    for pk, fate in fates.items():
        fate.came, fate.went = came[pk], went[pk]
    return sorted(fates.values(), key=lambda fate: (-max(fate.before, fate.after), fate.cluster.number))


def _add(fates: dict[int, Fate], was: int, now: int, count: int) -> None:
    if was in fates:
        fates[was].before += count
    if now in fates:
        fates[now].after += count
    if was == now and was in fates:
        fates[was].stayed += count


def _count_flows(first: Ids, second: Ids) -> Counter[tuple[int, int]]:
    pairs, counts = np.unique(np.stack([first, second], axis=1), axis=0, return_counts=True)
    return Counter({(int(was), int(now)): int(n) for (was, now), n in zip(pairs, counts, strict=True)})
