"""Before stage 1: spans that are pushed wait here, masked, until their trace has been quiet for a while.

Putting them together is for the adapters to do; late ones have their trace put together again, which updates its case.
Of a trace that has been forgotten and has a case a mark stays, so that what comes even later does not take its place.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Count, Max, Min, Q
from psycopg.types.json import Jsonb

from evolution.loop.clock import database_time
from evolution.models import FailureCase, Sighting, Source, TracePart

# The span id of what stands for a trace that has been forgotten; no span has it.
FORGOTTEN = ""
# Traces that are forgotten in one transaction.
_TOGETHER = 500

_STORE = """
INSERT INTO evolution_tracepart (source_id, trace_id, span_id, data, received_at)
SELECT %s, trace_id, span_id, data, statement_timestamp()
FROM unnest(%s::text[], %s::text[], %s::jsonb[]) AS part (trace_id, span_id, data)
ORDER BY trace_id, span_id
ON CONFLICT (source_id, trace_id, span_id) DO UPDATE
SET data = EXCLUDED.data, received_at = EXCLUDED.received_at, assembled_at = NULL
WHERE evolution_tracepart.data IS DISTINCT FROM EXCLUDED.data
"""


class Part(NamedTuple):
    """A span: where it belongs, and itself as the reader takes it."""

    trace_id: str
    span_id: str
    data: dict[str, Any]


def store_parts(source: Source, parts: Iterable[Part]) -> None:
    """Keep spans; the same one again changes nothing, and with other content has its trace put together again."""
    # Of two spans with one id in a request, the later one counts.
    unique = {(part.trace_id, part.span_id): part.data for part in parts}
    if not unique:
        return
    # In one order everywhere, so that two requests never wait for each other.
    keys = sorted(unique)
    traces, spans = [key[0] for key in keys], [key[1] for key in keys]
    with connection.cursor() as cursor:
        cursor.execute(_STORE, [source.pk, traces, spans, [Jsonb(unique[key]) for key in keys]])


def list_waiting_sources() -> list[int]:
    """Sources with new parts, the one first that has waited longest."""
    waiting = TracePart.objects.filter(assembled_at=None).order_by().values("source_id")
    return [row["source_id"] for row in waiting.annotate(first=Min("received_at")).order_by("first")]


def list_quiet_traces(source_id: int, limit: int) -> list[str]:
    """Traces of a source that have new parts and have been quiet, or have waited long, oldest first."""
    now = database_time()
    waiting = TracePart.objects.filter(source=source_id, assembled_at=None).order_by().values("trace_id")
    quiet = Q(last__lt=now - timedelta(seconds=settings.TRACE_QUIET_SECONDS))
    long = Q(first__lt=now - timedelta(seconds=settings.TRACE_LONGEST_WAIT_SECONDS))
    found = waiting.annotate(first=Min("received_at"), last=Max("received_at")).filter(quiet | long)
    return [row["trace_id"] for row in found.order_by("first")[:limit]]


def claim_parts(source_id: int, trace_ids: Sequence[str]) -> list[TracePart]:
    """All parts of those traces that have new ones, and that nobody else is at; needs a transaction.

    The new ones are marked as put together; who pushes one of them once more waits until the transaction ends.
    """
    parts = TracePart.objects.filter(source=source_id, trace_id__in=trace_ids).order_by("trace_id", "span_id")
    claimed = list(parts.filter(assembled_at=None).select_for_update(skip_locked=True))
    TracePart.objects.filter(pk__in=[part.pk for part in claimed]).update(assembled_at=database_time())
    return list(parts.filter(trace_id__in={part.trace_id for part in claimed}))


def prune_parts() -> int:
    """Forget traces of which nothing was heard for long; returns how many parts that were."""
    before = database_time() - timedelta(hours=settings.TRACE_KEPT_HOURS)
    traces = TracePart.objects.order_by().values("source_id", "trace_id")
    figures = traces.annotate(
        last=Max("received_at"), span=Max("span_id"), waiting=Count("pk", filter=Q(assembled_at=None))
    )
    old = figures.filter(last__lt=before, waiting=0).exclude(span=FORGOTTEN)
    count = 0
    for source in Source.objects.filter(pk__in=old.values("source_id")):
        trace_ids = list(old.filter(source_id=source.pk).values_list("trace_id", flat=True))
        for start in range(0, len(trace_ids), _TOGETHER):
            count += _forget(source, trace_ids[start : start + _TOGETHER])
    return count


@transaction.atomic
def _forget(source: Source, trace_ids: Sequence[str]) -> int:
    now = database_time()
    gone = TracePart.objects.filter(source=source, trace_id__in=trace_ids, assembled_at__isnull=False)
    count = gone.exclude(span_id=FORGOTTEN).delete()[0]
    named = {"harness": source.harness_id, "source": source.name, "source_id__in": trace_ids}
    known = {
        name
        for model in (FailureCase, Sighting)
        for name in model.objects.filter(**named).values_list("source_id", flat=True)
    }
    marks = [
        TracePart(source=source, trace_id=name, span_id=FORGOTTEN, data={}, received_at=now, assembled_at=now)
        for name in sorted(known)
    ]
    TracePart.objects.bulk_create(marks, ignore_conflicts=True)
    return count
