"""What the inbox of failure cases can be narrowed to, as one value that comes from an address or a saved view."""

from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThanOrEqual, LessThan
from django.utils import timezone

from evolution.models import FailureCase, Harness
from evolution.queries.case_terms import containing, split_terms
from evolution.states import CaseState

# What `CaseFilter.cluster` and `.assignee` say for cases that belong to none.
UNCLUSTERED = "none"
UNASSIGNED = "none"
# No transaction that adds cases lasts longer, and no two clocks are further apart.
SKEW = timedelta(hours=1)


# Kept from the planner's sight: it takes days and ids for independent, and would fetch and sort all of the days' cases.
_ADDED = Coalesce("created_at", "created_at")


@dataclass(frozen=True)
class CaseFilter:
    """What a list of cases is narrowed to; what is empty narrows nothing."""

    state: str = CaseState.OPEN
    source: str = ""
    category: str = ""
    # a cluster's number, or UNCLUSTERED
    cluster: str = ""
    # words that all have to be there, phrases in quotation marks
    text: str = ""
    tag: str = ""
    # a user name, or UNASSIGNED
    assignee: str = ""
    language: str = ""
    # the first characters of a commit, or all of it
    version: str = ""
    # id of an import
    imported: int | None = None
    # bounds of the lowest score, both of them included
    lowest: float | None = None
    highest: float | None = None
    # days on which cases came in, both of them included
    since: date | None = None
    until: date | None = None
    # no case with a higher id: those that came in later are left out
    upto: int | None = None

    def without_text(self) -> "CaseFilter":
        """The same, but for what is searched."""
        return replace(self, text="")


def filter_cases(harness: Harness, wanted: CaseFilter) -> QuerySet[FailureCase]:
    """The cases of a harness that pass the filter, newest first.

    Words are looked for in every case that passes the rest; `case_search` has the quick way.
    """
    cases = FailureCase.objects.filter(_exact(wanted), harness=harness)
    if wanted.cluster == UNCLUSTERED:
        cases = cases.filter(cluster=None)
    elif wanted.cluster:
        numbered = harness.clusters.filter(number=int(wanted.cluster)).values_list("pk", flat=True)
        # Its id, not a join: the index on it is in the list's order.
        cases = cases.filter(cluster=numbered.first() or 0)
    cases = _filter_values(cases, wanted)
    cases = _filter_days(cases, harness, wanted)
    if terms := split_terms(wanted.text):
        cases = cases.filter(containing(terms, "text__text"))
    return cases.order_by("-id")


def _exact(wanted: CaseFilter) -> Q:
    columns = {
        "state": wanted.state,
        "source": wanted.source,
        "category": wanted.category,
        "language": wanted.language,
    }
    condition = Q(**{name: value for name, value in columns.items() if value})
    if wanted.assignee == UNASSIGNED:
        condition &= Q(assignee=None)
    elif wanted.assignee:
        condition &= Q(assignee__username=wanted.assignee)
    return condition


def _filter_values(cases: QuerySet[FailureCase], wanted: CaseFilter) -> QuerySet[FailureCase]:
    if wanted.tag:
        cases = cases.filter(tags__contains=[wanted.tag])
    if len(wanted.version) == 40:
        cases = cases.filter(harness_commit=wanted.version)
    elif wanted.version:
        cases = cases.filter(harness_commit__startswith=wanted.version)
    if wanted.imported is not None:
        cases = cases.filter(import_run=wanted.imported)
    if wanted.lowest is not None:
        cases = cases.filter(score__gte=wanted.lowest)
    if wanted.highest is not None:
        cases = cases.filter(score__lte=wanted.highest)
    return cases


def _filter_days(cases: QuerySet[FailureCase], harness: Harness, wanted: CaseFilter) -> QuerySet[FailureCase]:
    """Narrow to days, and with them to ids: those grow with time, and the list is in their order."""
    if wanted.since is not None:
        begin = _midnight(wanted.since)
        cases = cases.filter(GreaterThanOrEqual(_ADDED, begin))
        earlier = FailureCase.objects.filter(harness=harness, created_at__lt=begin - SKEW)
        if last := earlier.order_by("-created_at").values_list("pk", flat=True).first():
            cases = cases.filter(pk__gt=last)
    if wanted.until is not None:
        end = _midnight(wanted.until + timedelta(days=1))
        cases = cases.filter(LessThan(_ADDED, end))
        later = FailureCase.objects.filter(harness=harness, created_at__gte=end + SKEW)
        if first := later.order_by("created_at").values_list("pk", flat=True).first():
            cases = cases.filter(pk__lt=first)
    if wanted.upto is not None:
        cases = cases.filter(pk__lte=wanted.upto)
    return cases


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time()))
