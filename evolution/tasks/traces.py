"""Traces that were pushed become records once they are quiet; beat asks for it every few seconds."""

import logging
from collections import defaultdict

from celery import shared_task
from django.db import transaction

from evolution.adapters.formats.traces import assemble
from evolution.loop.masking import Masker, current_masker
from evolution.loop.pushed import PushReport, store_pushed
from evolution.loop.trace_parts import claim_parts, list_quiet_traces, prune_parts
from evolution.models import Source, TracePart
from evolution.ports import Record
from evolution.tasks.assigning import request_assignment

logger = logging.getLogger(__name__)

# Traces that are put together in one transaction, and in one task.
TOGETHER = 20
MOST = 2000


class _Assembled:
    """Records as `store_pushed` takes them."""

    name = "otlp"
    format = "otlp"

    def __init__(self, records: list[Record]) -> None:
        self.records = records


@shared_task(name="evolution.assemble_traces")
def assemble_traces() -> None:
    """Put the traces together that have been quiet for a while, and forget the parts of old ones."""
    waiting = defaultdict(list)
    for source_id, trace_id in list_quiet_traces(MOST):
        waiting[source_id].append(trace_id)
    masker = current_masker() if waiting else None
    for source_id, traces in waiting.items():
        source = Source.objects.select_related("harness").get(pk=source_id)
        changed = 0
        for start in range(0, len(traces), TOGETHER):
            changed += _assemble_some(source, traces[start : start + TOGETHER], masker)
        if changed:
            request_assignment(source.harness)


@shared_task(name="evolution.prune_traces")
def prune_traces() -> None:
    """Forget the parts of traces of which nothing was heard for long."""
    prune_parts()


def _assemble_some(source: Source, trace_ids: list[str], masker: Masker | None) -> int:
    """Store the cases of some traces; returns how many are new or changed."""
    report = PushReport()
    with transaction.atomic():
        parts = defaultdict(list)
        for part in claim_parts(source.pk, trace_ids):
            parts[part.trace_id].append(part)
        records = [record for some in parts.values() for record in _read(some)]
        if records and masker:
            store_pushed(source, [_Assembled(records)], masker, report)
    return report.new + report.updated


def _read(parts: list[TracePart]) -> list[Record]:
    """The record of one trace; none where it has nothing of an agent in it."""
    try:
        read = assemble([part.data for part in parts])
    except Exception:
        # A mistake of the reader must not keep the other traces from being read, and is not tried again every time.
        logger.exception("trace %s can't be put together", parts[0].trace_id)
        return []
    return [record for record in read if isinstance(record, Record)]
