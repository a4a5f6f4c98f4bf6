"""Sources of failures: by their token, and how much came from each."""

from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from django.db.models import Count, Q
from django.db.models.functions import TruncDate
from django.utils import timezone

from evolution.loop.source_tokens import digest_token
from evolution.loop.trace_parts import FORGOTTEN
from evolution.models import FailureCase, Harness, Sighting, Source, TracePart

DAYS = 14


def find_source(token: str) -> Source | None:
    """The source that has this token, also when it is disabled."""
    if not token:
        return None
    return Source.objects.select_related("harness").filter(token_digest=digest_token(token)).first()


@dataclass(frozen=True)
class SourceLine:
    """A source on the list, with what came from it."""

    source: Source
    cases: int
    open: int
    # of the last DAYS days, oldest first: (day, failures that came in, seen-again ones included)
    days: list[tuple[date, int]]

    @property
    def recent(self) -> int:
        """Failures of these days."""
        return sum(count for _day, count in self.days)


def list_sources(harness: Harness) -> list[SourceLine]:
    """Every source of a harness by name, with its figures."""
    totals = {row["source"]: row for row in _count_cases(harness)}
    by_day = _count_days(harness)
    today = timezone.localdate()
    days = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    return [
        SourceLine(
            source,
            totals.get(source.name, {}).get("n", 0),
            totals.get(source.name, {}).get("n_open", 0),
            [(day, by_day[source.name, day]) for day in days],
        )
        for source in harness.sources.all()
    ]


def source_line(source: Source) -> SourceLine:
    """One source with its figures."""
    return next(line for line in list_sources(source.harness) if line.source.pk == source.pk)


def count_waiting(source: Source) -> int:
    """Traces of a source that are not put together yet."""
    waiting = TracePart.objects.filter(source=source, assembled_at=None)
    return waiting.values("trace_id").distinct().count()


def count_assembled(source: Source) -> int:
    """Traces of a source that were put together in the last day, whether the rule found a failure or not."""
    since = timezone.now() - timedelta(days=1)
    traces = TracePart.objects.filter(source=source, assembled_at__gte=since).exclude(span_id=FORGOTTEN)
    return traces.values("trace_id").distinct().count()


def _count_cases(harness: Harness) -> Any:
    names = list(harness.sources.values_list("name", flat=True))
    cases = FailureCase.objects.filter(harness=harness, source__in=names).order_by()
    return cases.values("source").annotate(n=Count("pk"), n_open=Count("pk", filter=Q(state="open")))


def _count_days(harness: Harness) -> Counter[tuple[str, date]]:
    since = timezone.now() - timedelta(days=DAYS)
    names = list(harness.sources.values_list("name", flat=True))
    counted: Counter[tuple[str, date]] = Counter()
    for model in (FailureCase, Sighting):
        rows = model.objects.filter(harness=harness, source__in=names, created_at__gte=since).order_by()
        for row in rows.annotate(day=TruncDate("created_at")).values("source", "day").annotate(n=Count("pk")):
            counted[row["source"], row["day"]] += row["n"]
    return counted
