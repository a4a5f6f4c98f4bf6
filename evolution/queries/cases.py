"""The inbox of failure cases, page by page. A page is found from the last row of the one before: nothing is counted."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.models import FailureCase, Harness
from evolution.queries.case_filters import CaseFilter, filter_cases
from evolution.queries.case_search import Found, search_cases
from evolution.queries.case_terms import split_terms

PAGE_SIZE = 50
# The columns that a list needs; trajectories stay in the database.
ROW_FIELDS = (
    "id", "harness_id", "state", "source", "source_id", "category", "language", "title", "symptom", "scores", "score",
    "tags", "count", "created_at", "assignee__username", "cluster__number", "cluster__name", "cluster__harness_id",
)  # fmt: skip
# Seconds for finding all cases that a search has, when something is to be done to them.
THOROUGH = 25.0


@dataclass(frozen=True)
class CasePage:
    """Some cases of a list, newest first, and where the list goes on."""

    rows: list[FailureCase]
    # the older ones come before this id; None at the end of the list
    older: int | None = None
    # the newer ones come after this id; None at its beginning
    newer: int | None = None
    # time ran out: what is beyond this id, in the direction of `before` or `after`, has not been searched yet
    stopped_at: int | None = None

    def __iter__(self) -> Iterator[FailureCase]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def list_cases(
    harness: Harness, wanted: CaseFilter, *, before: int | None = None, after: int | None = None
) -> CasePage:
    """The newest cases that pass the filter, or those next to an id: older ones `before` it, newer ones `after` it.

    No page is empty while cases pass: where none is left beyond the id, it is those at that end of the list.
    """
    upwards = after is not None and before is None
    cases = filter_cases(harness, wanted.without_text())
    if upwards:
        cases = cases.filter(pk__gt=after)
    elif before is not None:
        cases = cases.filter(pk__lt=before)
    rows, stopped_at = _read_rows(cases, wanted.text, upwards=upwards)
    has_more = len(rows) > PAGE_SIZE
    if upwards and not has_more and stopped_at is None:
        return list_cases(harness, wanted)
    if before is not None and not rows and stopped_at is None:
        return replace(list_cases(harness, wanted, after=before - 1), older=None)
    del rows[PAGE_SIZE:]
    if upwards:
        rows.reverse()
        newer = rows[0].pk if has_more else stopped_at
        return CasePage(rows, rows[-1].pk if rows else None, newer, stopped_at)
    older = rows[-1].pk if has_more else stopped_at
    return CasePage(rows, older, rows[0].pk if rows and before is not None else None, stopped_at)


def _read_rows(
    cases: QuerySet[FailureCase], text: str, *, upwards: bool
) -> tuple[list[FailureCase], int | None]:
    """The rows of a page and one more, and where the search for them stopped, if it did."""
    if split_terms(text):
        found = _find(cases, text, PAGE_SIZE + 1, upwards=upwards)
        return read_rows(found.ids), found.stopped_at
    return list(_as_rows(cases.order_by("id" if upwards else "-id"))[: PAGE_SIZE + 1]), None


def _as_rows(cases: QuerySet[FailureCase]) -> QuerySet[FailureCase]:
    return cases.select_related("cluster", "assignee").only(*ROW_FIELDS)


def _find(cases: QuerySet[FailureCase], text: str, limit: int, *, upwards: bool) -> Found:
    if terms := split_terms(text):
        return search_cases(cases, terms, limit, upwards=upwards)
    ordered = cases.order_by("id" if upwards else "-id")
    return Found(list(ordered.values_list("pk", flat=True)[:limit]))


def read_rows(ids: list[int]) -> list[FailureCase]:
    """The cases of these ids as a list shows them, in this order."""
    found = {case.pk: case for case in _as_rows(FailureCase.objects.filter(pk__in=ids))}
    return [found[pk] for pk in ids if pk in found]


def find_ids(harness: Harness, wanted: CaseFilter) -> QuerySet[FailureCase, int] | list[int]:
    """The ids of all cases that pass the filter: a query that can stand in another one, or a list after a search.

    Raises LoopError when there is more to search through than time for it.
    """
    cases = filter_cases(harness, wanted.without_text())
    if terms := split_terms(wanted.text):
        found = search_cases(cases, terms, limit=10**9, patience=THOROUGH)
        if found.stopped_at is not None:
            raise LoopError(_("There are too many cases to search all of them for this; narrow the filters."))
        return found.ids
    return cases.order_by().values_list("pk", flat=True)


def count_cases(harness: Harness, wanted: CaseFilter) -> int:
    """How many cases pass the filter, exactly."""
    found = find_ids(harness, wanted)
    return len(found) if isinstance(found, list) else found.count()


def find_neighbours(harness: Harness, wanted: CaseFilter, pk: int) -> tuple[int | None, int | None]:
    """The ids of the newer and the older case beside one in a list; the case itself need not be in it."""
    cases = filter_cases(harness, wanted.without_text())
    newer = _find(cases.filter(pk__gt=pk), wanted.text, 1, upwards=True)
    older = _find(cases.filter(pk__lt=pk), wanted.text, 1, upwards=False)
    return next(iter(newer.ids), None), next(iter(older.ids), None)
