"""The values that the filters of the inbox offer, and how the cases that pass them spread over the values."""

from collections import Counter
from dataclasses import dataclass, field

from django.db import connection
from django.db.models import Q

from evolution.models import Cluster, FailureCase, Harness, ImportRun
from evolution.queries.case_filters import CaseFilter, filter_cases
from evolution.queries.case_search import search_cases
from evolution.queries.case_terms import split_terms
from evolution.queries.people import list_people

# Values of one filter that are offered; the address takes any.
MOST_VALUES = 200
# The newest cases that are counted by value; an inbox that is larger says so.
MOST_COUNTED = 20_000
# The newest cases with tags, whose tags are offered.
MOST_TAGGED = 1_000
# Seconds that counting may take while somebody looks at the list.
PATIENCE = 3.0


@dataclass(frozen=True)
class CaseChoices:
    """What the filters offer."""

    sources: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    versions: list[str] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    clusters: list[Cluster] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    imports: list[ImportRun] = field(default_factory=list)


@dataclass(frozen=True)
class CaseCounts:
    """The newest cases that pass a filter, by value, the most frequent first; empty values are left out."""

    total: int = 0
    # whether there are more than were counted
    is_capped: bool = False
    states: dict[str, int] = field(default_factory=dict)
    sources: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)
    languages: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    tags: dict[str, int] = field(default_factory=dict)
    # by number
    clusters: dict[str, int] = field(default_factory=dict)
    unclustered: int = 0


def list_choices(harness: Harness) -> CaseChoices:
    """The values that the harness's cases have, each found by a step along an index; tags are those used lately."""
    clusters = Cluster.objects.filter(harness=harness, merged_into=None)
    runs = ImportRun.objects.filter(harness=harness).only("id", "created_at")
    return CaseChoices(
        sources=_distinct("source", harness),
        categories=_distinct("category", harness),
        versions=_distinct("harness_commit", harness),
        tags=list_tags(harness),
        clusters=list(clusters.only("number", "name").order_by("number")[:MOST_VALUES]),
        people=[person.get_username() for person in list_people()],
        imports=list(runs.order_by("-id")[:20]),
    )


def newest_change(harness: Harness) -> str:
    """What differs once the values may have: the newest event of the harness, and its newest case."""
    with connection.cursor() as cursor:
        cursor.execute(_NEWEST, [harness.pk, harness.pk])
        event, case = cursor.fetchone()
    return f"{event}-{case}"


_NEWEST = """
SELECT (SELECT id FROM evolution_event WHERE harness_id = %s ORDER BY id DESC LIMIT 1),
       (SELECT id FROM evolution_failurecase WHERE harness_id = %s ORDER BY id DESC LIMIT 1)
"""


def list_tags(harness: Harness) -> list[str]:
    """The tags of the newest cases that have some."""
    tagged = FailureCase.objects.filter(~Q(tags=[]), harness=harness).order_by("-id")
    return sorted({tag for tags in tagged.values_list("tags", flat=True)[:MOST_TAGGED] for tag in tags})


def _distinct(column: str, harness: Harness) -> list[str]:
    """The values of a column that has an index behind the harness, without reading all rows."""
    name = connection.ops.quote_name(column)
    with connection.cursor() as cursor:
        cursor.execute(_STEPS.format(column=name), [harness.pk, harness.pk, MOST_VALUES])
        return [value for (value,) in cursor.fetchall() if value]


_STEPS = """
WITH RECURSIVE step (value) AS (
    SELECT min({column}) FROM evolution_failurecase WHERE harness_id = %s
    UNION ALL
    SELECT (SELECT min({column}) FROM evolution_failurecase WHERE harness_id = %s AND {column} > step.value)
    FROM step WHERE step.value IS NOT NULL
)
SELECT value FROM step WHERE value IS NOT NULL LIMIT %s
"""


def count_by_value(harness: Harness, wanted: CaseFilter) -> CaseCounts:
    """How the newest cases that pass the filter spread over the values; exact for up to MOST_COUNTED cases."""
    cases = filter_cases(harness, wanted.without_text())
    is_capped = False
    if terms := split_terms(wanted.text):
        found = search_cases(cases, terms, MOST_COUNTED + 1, patience=PATIENCE)
        is_capped = found.stopped_at is not None
        cases = FailureCase.objects.filter(pk__in=found.ids).order_by("-id")
    rows = list(cases.values_list(*_COUNTED)[: MOST_COUNTED + 1])
    is_capped |= len(rows) > MOST_COUNTED
    return _count(rows[:MOST_COUNTED], is_capped=is_capped)


_COUNTED = ("state", "source", "category", "language", "harness_commit", "cluster__number", "tags")


def _count(rows: list[tuple[object, ...]], *, is_capped: bool) -> CaseCounts:
    columns = list(zip(*rows, strict=True)) or [()] * len(_COUNTED)
    *plain, numbers, tags = columns
    states, sources, categories, languages, versions = (_by_frequency(column) for column in plain)
    return CaseCounts(
        total=len(rows),
        is_capped=is_capped,
        states=states,
        sources=sources,
        categories=categories,
        languages=languages,
        versions=versions,
        tags=_by_frequency(tuple(tag for row in tags for tag in row)),
        clusters=_by_frequency(numbers),
        unclustered=sum(number is None for number in numbers),
    )


def _by_frequency(values: tuple[object, ...]) -> dict[str, int]:
    return {str(value): n for value, n in Counter(values).most_common(MOST_VALUES) if value not in {None, ""}}
