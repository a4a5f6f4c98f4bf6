"""The inbox of failure cases: filters, pages of rows, and one case with what is around it."""

from dataclasses import dataclass, field

from django.core.paginator import Page, Paginator
from django.db.models import Count, Q, QuerySet

from evolution.models import Cluster, FailureCase, Harness
from evolution.states import CaseState

PAGE_SIZE = 50
# What `CaseFilter.cluster` says for cases that belong to none.
UNCLUSTERED = "none"
# The columns that a list needs; trajectories stay in the database.
ROW_FIELDS = (
    "id", "harness_id", "state", "source", "source_id", "category", "language", "title", "symptom", "scores",
    "count", "created_at", "cluster__number", "cluster__name", "cluster__harness_id",
)  # fmt: skip


@dataclass(frozen=True)
class CaseFilter:
    """What a list of cases is narrowed to; an empty string narrows nothing."""

    state: str = CaseState.OPEN
    source: str = ""
    category: str = ""
    # a cluster's number, or UNCLUSTERED
    cluster: str = ""
    text: str = ""


@dataclass(frozen=True)
class CaseFacets:
    """The values that the filters offer, each with how many cases have it; clusters have it as `n`."""

    states: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    clusters: list[Cluster] = field(default_factory=list)
    unclustered: int = 0


def filter_cases(harness: Harness, wanted: CaseFilter) -> QuerySet[FailureCase]:
    """The cases of a harness that pass the filter, newest first."""
    cases = FailureCase.objects.filter(harness=harness)
    exact = {"state": wanted.state, "source": wanted.source, "category": wanted.category}
    cases = cases.filter(**{name: value for name, value in exact.items() if value})
    if wanted.cluster == UNCLUSTERED:
        cases = cases.filter(cluster=None)
    elif wanted.cluster:
        cases = cases.filter(cluster__number=int(wanted.cluster))
    for word in wanted.text.split():
        cases = cases.filter(
            Q(title__icontains=word)
            | Q(symptom__icontains=word)
            | Q(reply__icontains=word)
            | Q(source_id__icontains=word)
        )
    return cases.order_by("-id")


def list_cases(harness: Harness, wanted: CaseFilter, page: str | int = 1) -> Page[FailureCase]:
    """One page of cases; a page number out of range gives the nearest page."""
    rows = filter_cases(harness, wanted).select_related("cluster").only(*ROW_FIELDS)
    return Paginator(rows, PAGE_SIZE).get_page(page)


def case_facets(harness: Harness, state: str = "") -> CaseFacets:
    """What the inbox holds, for its filters; all but the states are counted among the cases of `state`, if given."""
    cases = FailureCase.objects.filter(harness=harness)
    among = cases.filter(state=state) if state else cases
    in_state = Q(members__state=state) if state else Q()
    clusters = Cluster.objects.filter(harness=harness).annotate(n=Count("members", filter=in_state))
    return CaseFacets(
        states=_count_by(cases, "state"),
        sources=_count_by(among, "source"),
        categories=_count_by(among, "category"),
        clusters=list(clusters.filter(n__gt=0).only("number", "name").order_by("number")),
        unclustered=among.filter(cluster=None).count(),
    )


def _count_by(cases: QuerySet[FailureCase], column: str) -> dict[str, int]:
    rows = cases.values_list(column).annotate(n=Count("id")).order_by(column)
    return {value: n for value, n in rows if value}


def neighbours(case: FailureCase) -> tuple[int | None, int | None]:
    """The ids of the newer and the older open case, to walk the inbox with."""
    cases = FailureCase.objects.filter(harness_id=case.harness_id, state=CaseState.OPEN)
    newer = cases.filter(pk__gt=case.pk).order_by("pk").values_list("pk", flat=True).first()
    older = cases.filter(pk__lt=case.pk).order_by("-pk").values_list("pk", flat=True).first()
    return newer, older
