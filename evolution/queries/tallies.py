"""Counts and sums over the results of one evaluation, made by the database in one pass; 50,000 results are polled.

`scores` and `progress` make figures of them; nothing here judges.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from django.db import connection
from django.db.models import Count

from evolution.models import DatasetCase, Evaluation
from evolution.states import Split

# Results of the last seconds tell how fast an evaluation is.
RECENT_SECONDS = 30


@dataclass(frozen=True)
class Sums:
    """Of a metric: over cases with n scores that add up to s, the sums of s, s * s and s * n."""

    total: float = 0.0
    squares: float = 0.0
    by_count: float = 0.0

    def __add__(self, other: "Sums") -> "Sums":
        """Of both."""
        return Sums(self.total + other.total, self.squares + other.squares, self.by_count + other.by_count)


@dataclass(frozen=True)
class Tally:
    """Some results of an evaluation, counted."""

    is_guard: bool = False
    # empty when results are not told apart by category
    category: str = ""
    # empty for scores
    error_kind: str = ""
    results: int = 0
    # of the last RECENT_SECONDS, and since the last resumption
    recent: int = 0
    # with a score, and of them those with a repeat below full marks
    cases: int = 0
    failing: int = 0
    # over the cases with n scores each, the sums of n and n * n
    scores: int = 0
    scores_squared: int = 0
    accuracy: Sums = Sums()
    effectiveness: Sums = Sums()


# Of late, and since it was resumed if it was: greatest() passes over what is null.
_RECENT = "r.created_at > greatest(now() - %(seconds)s * interval '1 second', %(resumed)s::timestamptz)"
# A row per case and error kind; with one repeat every result is such a row already.
_BY_CASE = """
    SELECT r.case_id, r.error_kind, count(*) AS results,
           count(*) FILTER (WHERE {recent}) AS recent,
           count(r.accuracy) AS n, sum(r.accuracy) AS a, sum(r.effectiveness) AS e,
           bool_or(r.accuracy < 1 OR r.effectiveness < 1) AS fails
    FROM evolution_caseresult r WHERE r.evaluation_id = %(evaluation)s GROUP BY r.case_id, r.error_kind
"""
_SINGLE = """
    SELECT r.case_id, r.error_kind, 1 AS results,
           ({recent})::int AS recent,
           (r.accuracy IS NOT NULL)::int AS n, r.accuracy AS a, r.effectiveness AS e,
           (r.accuracy < 1 OR r.effectiveness < 1) AS fails
    FROM evolution_caseresult r WHERE r.evaluation_id = %(evaluation)s
"""
_SUMS = """
    sum(results), sum(recent), count(*) FILTER (WHERE n > 0), count(*) FILTER (WHERE fails), sum(n), sum(n * n),
    sum(a), sum(a * a), sum(a * n), sum(e), sum(e * e), sum(e * n)
"""
_TALLY = """
    SELECT guard.id IS NOT NULL, '', error_kind, {sums} FROM ({rows}) AS by_case
    LEFT JOIN unnest(%(guard)s::bigint[]) AS guard(id) ON guard.id = by_case.case_id GROUP BY 1, 3
"""
_TALLY_BY_CATEGORY = """
    SELECT c.split = 'guard', c.category, error_kind, {sums} FROM ({rows}) AS by_case
    JOIN evolution_datasetcase c ON c.id = by_case.case_id GROUP BY 1, 2, 3
"""


def tally_results(evaluation: Evaluation, *, by_category: bool = False) -> list[Tally]:
    """The results so far by guard, error kind and, if asked for, category, which takes twice as long."""
    template = _TALLY_BY_CATEGORY if by_category else _TALLY
    values: dict[str, Any] = {"evaluation": evaluation.pk, "seconds": RECENT_SECONDS}
    values["resumed"] = evaluation.queued_at
    if not by_category:
        values["guard"] = list(_guard_cases(evaluation.dataset_version_id))
    with connection.cursor() as cursor:
        rows = (_SINGLE if evaluation.repeats == 1 else _BY_CASE).format(recent=_RECENT)
        cursor.execute(template.format(sums=_SUMS, rows=rows), values)
        return [_read_tally(row) for row in cursor.fetchall()]


def _read_tally(row: Sequence[Any]) -> Tally:
    is_guard, category, error_kind, *figures = row
    results, recent, cases, failing, scores, squared, *sums = (figure or 0 for figure in figures)
    return Tally(
        is_guard, category, error_kind, int(results), int(recent), int(cases), int(failing), int(scores),
        int(squared), Sums(*map(float, sums[:3])), Sums(*map(float, sums[3:])),
    )  # fmt: skip


def join_tallies(tallies: Iterable[Tally]) -> Tally:
    """All of them as one."""
    tallies = list(tallies)
    counts = ("results", "recent", "cases", "failing", "scores", "scores_squared")
    return Tally(
        **{name: sum(getattr(tally, name) for tally in tallies) for name in counts},
        accuracy=sum((tally.accuracy for tally in tallies), Sums()),
        effectiveness=sum((tally.effectiveness for tally in tallies), Sums()),
    )


@lru_cache(maxsize=64)
def _guard_cases(version: int) -> tuple[int, ...]:
    """A dataset version never changes, so this is read once."""
    return tuple(DatasetCase.objects.filter(version=version, split=Split.GUARD).values_list("pk", flat=True))


@lru_cache(maxsize=64)
def count_cases(version: int) -> dict[tuple[str, str], int]:
    """(split, category) -> cases of a dataset version; not to be changed by who gets it."""
    counts = DatasetCase.objects.filter(version=version).order_by().values_list("split", "category")
    return {(split, category): n for split, category, n in counts.annotate(n=Count("pk"))}
