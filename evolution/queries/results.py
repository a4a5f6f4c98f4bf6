"""The results of one evaluation: filters, pages of rows, how their runs ended, and what faults struck them."""

from dataclasses import dataclass, field
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, F, Func, IntegerField, Q, QuerySet, Sum, TextField
from django.db.models.functions import Cast

from evolution.models import CaseResult, Evaluation

PAGE_SIZE = 50
# What `ResultFilter.status` says for results without a run: the scoring itself failed.
NO_RUN = "none"
FAILING = Q(accuracy__lt=1) | Q(effectiveness__lt=1)
ERROR = ~Q(error_kind="")
# The values of `ResultFilter.outcome`, in the order of the list: the worst first.
OUTCOMES = {"errors": ERROR, "failing": FAILING, "passed": Q(accuracy__gte=1, effectiveness__gte=1)}
# The columns that a list needs; trajectories stay in the database.
ROW_FIELDS = (
    "id", "evaluation_id", "repeat", "accuracy", "effectiveness", "reasons", "reply", "error", "error_kind",
    "run_status", "case__key", "case__category", "case__split",
)  # fmt: skip


@dataclass(frozen=True)
class ResultFilter:
    """What a list of results is narrowed to; an empty string narrows nothing."""

    # a key of OUTCOMES
    outcome: str = ""
    category: str = ""
    # how the run ended, as its trajectory has it, or NO_RUN
    status: str = ""
    # what failed where there is no score
    error_kind: str = ""
    # in the case's key and request, the reply or the error
    text: str = ""


@dataclass(frozen=True)
class ResultFacets:
    """The values that the filters offer, each with how many results have it; all but the outcomes at least once."""

    total: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """Where a result stands in a list: ids of those beside it, its number from 1, and how many there are."""

    previous: int | None
    next: int | None
    number: int
    among: int


@dataclass(frozen=True)
class Struck:
    """What faults did: the tool calls they struck, and the results in which they did."""

    calls: int
    results: int


def filter_results(evaluation: Evaluation, wanted: ResultFilter) -> QuerySet[CaseResult]:
    """The results that pass the filter: errors first, then the worst scores."""
    results = evaluation.results.all()
    if wanted.outcome:
        results = results.filter(OUTCOMES[wanted.outcome])
    if wanted.category:
        results = results.filter(case__category=wanted.category)
    if wanted.status:
        results = results.filter(run_status="" if wanted.status == NO_RUN else wanted.status)
    if wanted.error_kind:
        results = results.filter(error_kind=wanted.error_kind)
    if wanted.text:
        results = results.annotate(request_text=Cast("case__request", TextField()))
    for word in wanted.text.split():
        results = results.filter(_has_word(word))
    worst_first = F("accuracy").asc(nulls_first=True)
    return results.order_by(worst_first, "effectiveness", "case__key", "repeat", "id")


def _has_word(word: str) -> Q:
    return (
        Q(case__key__icontains=word)
        | Q(request_text__icontains=word)
        | Q(reply__icontains=word)
        | Q(error__icontains=word)
    )


def list_results(evaluation: Evaluation, wanted: ResultFilter, page: str | int = 1) -> Page[CaseResult]:
    """One page of results; a page number out of range gives the nearest page."""
    rows = filter_results(evaluation, wanted).select_related("case").only(*ROW_FIELDS)
    return Paginator(rows, PAGE_SIZE).get_page(page)


def result_facets(evaluation: Evaluation) -> ResultFacets:
    """What the evaluation has so far, for the filters of its list."""
    outcomes = {name: Count("id", filter=wanted) for name, wanted in OUTCOMES.items()}
    counts = evaluation.results.aggregate(total=Count("id"), **outcomes)
    return ResultFacets(
        total=counts.pop("total"),
        outcomes=counts,
        categories=_count_by(evaluation.results.all(), "case__category"),
        statuses=count_statuses(evaluation),
    )


def count_statuses(evaluation: Evaluation) -> dict[str, int]:
    """How the runs ended, as their trajectories have it, or NO_RUN -> results; the most frequent first."""
    counts = _count_by(evaluation.results.all(), "run_status")
    return {status or NO_RUN: count for status, count in counts.items()}


def _count_by(results: QuerySet[Any], column: str) -> dict[str, int]:
    return dict(results.order_by().values_list(column).annotate(n=Count("id")).order_by("-n", column))


def find_place(result: CaseResult, wanted: ResultFilter) -> Place | None:
    """Where a result stands among those of its evaluation that pass the filter; None when it is not one of them."""
    ids = list(filter_results(result.evaluation, wanted).values_list("pk", flat=True))
    if result.pk not in ids:
        return None
    place = ids.index(result.pk)
    return Place(
        previous=ids[place - 1] if place else None,
        next=ids[place + 1] if place + 1 < len(ids) else None,
        number=place + 1,
        among=len(ids),
    )


def count_struck(evaluation: Evaluation) -> Struck:
    """How many tool calls say that a fault struck them; an agent that is not ours need not say it."""
    counted = evaluation.results.annotate(struck=_StruckCalls("trajectory", output_field=IntegerField()))
    sums = counted.aggregate(calls=Sum("struck"), hit=Count("id", filter=Q(struck__gt=0)))
    return Struck(sums["calls"] or 0, sums["hit"])


class _StruckCalls(Func):
    """How many tool calls of a trajectory have a fault; stored trajectories can have any shape."""

    template = (
        "jsonb_array_length(jsonb_path_query_array(%(expressions)s, "
        """'$.tool_calls[*].fault ? (@ != null && @ != "")'))"""
    )


def count_cases_with_faults(evaluation: Evaluation) -> int:
    """How many cases of the evaluation bring faults of their own."""
    cases = evaluation.dataset_version.cases.filter(split__in=evaluation.splits)
    return cases.exclude(faults=[]).count()
