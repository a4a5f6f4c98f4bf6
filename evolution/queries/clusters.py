"""Clusters with their figures, and one cluster with its members and work in progress."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import F, Prefetch
from django.db.models.expressions import OrderBy

from evolution.models import Cluster, Diagnosis, FailureCase, Harness, Job, Proposal
from evolution.queries.cases import ROW_FIELDS
from evolution.queries.cluster_figures import Size, Spread, measure_sizes, measure_spreads
from evolution.states import CaseState, ClusterState, DiagnosisState, JobKind, JobState

PAGE_SIZE = 50
# What `ClusterFilter.state` says for the clusters that want work, and for all.
LIVING, EVERY = "live", "all"
LIVE = (
    ClusterState.NEW,
    ClusterState.ESCALATING,
    ClusterState.REGRESSED,
    ClusterState.DIAGNOSED,
    ClusterState.IN_PROGRESS,
)


# The keys that lists are sorted by; the number decides between equals.
ORDERS: dict[str, Callable[[Size], tuple[float, ...]]] = {
    "size": lambda size: (-size.open_cases, -size.all_cases),
    "growth": lambda size: (size.week_before - size.week, -size.open_cases),
    "recent": lambda size: (-size.last.timestamp() if size.last else 0.0,),
    "number": lambda _size: (),
}
MEMBER_ORDERS: dict[str, list[OrderBy]] = {
    "strongest": [F("strength").desc(nulls_last=True), F("id").desc()],
    "weakest": [F("strength").asc(nulls_last=True), F("id").desc()],
    "newest": [F("id").desc()],
}


@dataclass(frozen=True)
class Quote:
    """A piece of evidence of a diagnosis, with the case it was taken from when that case is still there."""

    case_id: int
    turn: int | None
    quote: str
    is_verified: bool
    title: str


@dataclass(frozen=True)
class ClusterFilter:
    """What a list of clusters is narrowed to, and its order."""

    # one of ClusterState, LIVING or EVERY
    state: str = LIVING
    # part of a name or a description, or a number
    text: str = ""
    # one of ORDERS
    order: str = "size"
    page: int = 1


@dataclass(frozen=True)
class ClusterRow:
    """A cluster in a list."""

    cluster: Cluster
    size: Size
    # of the open failures of the harness, 0-1
    share: float
    spread: Spread
    # not rejected, the best of the newest answer first
    diagnoses: list[Diagnosis]


@dataclass(frozen=True)
class ClusterPage:
    """A page of a list of clusters, and how many clusters there are in each state."""

    page: "Page[Any]"
    rows: list[ClusterRow]
    states: dict[str, int]


def list_clusters(harness: Harness, wanted: ClusterFilter) -> ClusterPage:
    """The clusters that pass the filter, with their figures; merged ones are in what they were merged into."""
    sizes = measure_sizes(harness)
    clusters = list(Cluster.objects.filter(harness=harness, merged_into=None).defer("centroid"))
    alike = [cluster for cluster in clusters if _says(cluster, wanted.text)]
    chosen = [cluster for cluster in alike if _is_in(cluster, wanted.state, sizes)]
    chosen.sort(key=lambda cluster: (*ORDERS[wanted.order](sizes.get(cluster.pk, Size())), cluster.number))
    page = Paginator(chosen, PAGE_SIZE).get_page(wanted.page)
    shown = list(page.object_list)
    spreads = measure_spreads(shown, sizes)
    diagnoses = _standing_diagnoses(shown)
    total = max(sum(size.open_cases for size in sizes.values()) + count_unclustered(harness), 1)
    rows = []
    for cluster in shown:
        size = sizes.get(cluster.pk, Size())
        share = size.open_cases / total
        rows.append(ClusterRow(cluster, size, share, spreads[cluster.pk], diagnoses.get(cluster.pk, [])))
    return ClusterPage(page, rows, _count_states(alike, sizes))


def _says(cluster: Cluster, text: str) -> bool:
    wanted = text.strip().casefold()
    if wanted.removeprefix("#") == str(cluster.number):
        return True
    return wanted in f"{cluster.name}\n{cluster.description}".casefold()


def _is_in(cluster: Cluster, state: str, sizes: dict[int, Size]) -> bool:
    if state == EVERY:
        return True
    # One that a clustering has left without failures wants no work, and an ignored one does with open failures.
    if cluster.state in LIVE and cluster.pk not in sizes:
        return False
    if state == LIVING:
        is_back = cluster.state == ClusterState.IGNORED and sizes.get(cluster.pk, Size()).open_cases > 0
        return cluster.state in LIVE or is_back
    return cluster.state == state


def _count_states(clusters: list[Cluster], sizes: dict[int, Size]) -> dict[str, int]:
    wanted = (LIVING, EVERY, *ClusterState.values)
    return {state: sum(_is_in(cluster, state, sizes) for cluster in clusters) for state in wanted}


def _standing_diagnoses(clusters: list[Cluster]) -> dict[int, list[Diagnosis]]:
    proposals = Proposal.objects.select_related("step").only("id", "state", "diagnosis_id", "step__number")
    diagnoses = Diagnosis.objects.exclude(state=DiagnosisState.REJECTED).filter(cluster__in=clusters)
    found: dict[int, list[Diagnosis]] = defaultdict(list)
    best_first = diagnoses.order_by(F("exchange").desc(nulls_last=True), "rank", "-id")
    for diagnosis in best_first.prefetch_related(Prefetch("proposals", proposals.order_by("-id"))):
        found[diagnosis.cluster_id].append(diagnosis)
    return found


def count_unclustered(harness: Harness) -> int:
    """Open failures that belong to no cluster."""
    return FailureCase.objects.filter(harness=harness, state=CaseState.OPEN, cluster=None).count()


def count_open(harness: Harness) -> int:
    """Open failures."""
    return FailureCase.objects.filter(harness=harness, state=CaseState.OPEN).count()


def count_unseen(harness: Harness) -> int:
    """Unclustered open failures that nobody has compared with the clusters yet."""
    unseen = FailureCase.objects.filter(harness=harness, state=CaseState.OPEN, cluster=None, is_pinned=False)
    return unseen.filter(embedded_text="").count()


def list_members(cluster: Cluster, order: str = "strongest", state: str = "", page: int = 1) -> "Page[Any]":
    """A page of the members of a cluster; `order` is one of MEMBER_ORDERS, an empty `state` means all."""
    members = FailureCase.objects.filter(cluster=cluster)
    if state:
        members = members.filter(state=state)
    ordered = members.select_related("cluster", "assignee").only(*ROW_FIELDS, "strength", "is_pinned")
    return Paginator(ordered.order_by(*MEMBER_ORDERS[order]), PAGE_SIZE).get_page(page)


def list_quotes(diagnosis: Diagnosis) -> list[Quote]:
    """The evidence of a diagnosis; a case that is gone leaves its quote with an empty title."""
    return list_quotes_of([diagnosis])[diagnosis.pk]


def list_quotes_of(diagnoses: Sequence[Diagnosis]) -> dict[int, list[Quote]]:
    """The evidence of diagnoses of one harness, by their ids; see `list_quotes`."""
    cases = {_quoted_case(row) for each in diagnoses for row in _evidence(each)}
    found = FailureCase.objects.filter(pk__in=cases, harness__in={each.harness_id for each in diagnoses})
    titles = dict(found.values_list("pk", "title"))
    return {each.pk: [_read_quote(row, titles) for row in _evidence(each)] for each in diagnoses}


def _evidence(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    return [row for row in diagnosis.evidence if isinstance(row, dict)]


def _quoted_case(row: Mapping[str, Any]) -> int:
    # What a model wrote is kept as it wrote it.
    return row["case"] if isinstance(row.get("case"), int) else 0


def _read_quote(row: Mapping[str, Any], titles: Mapping[int, str]) -> Quote:
    case = _quoted_case(row)
    return Quote(
        case_id=case,
        turn=row.get("turn"),
        quote=str(row.get("quote", "")),
        is_verified=bool(row.get("verified")),
        title=titles.get(case, ""),
    )


def latest_job(harness: Harness, kind: JobKind, target_id: int | None = None) -> Job | None:
    """The newest job of a kind about a record (or the whole harness), whatever its state."""
    jobs = Job.objects.filter(harness=harness, kind=kind)
    if target_id is not None:
        jobs = jobs.filter(target_id=target_id)
    return jobs.order_by("-id").first()


def is_running(job: Job | None) -> bool:
    """Whether a job has yet to end."""
    return job is not None and job.state in {JobState.QUEUED, JobState.RUNNING}
