"""Traces that were pushed become records once they are quiet; beat asks for it every few seconds."""

import logging
from collections import defaultdict

from celery import shared_task
from django.db import InterfaceError, OperationalError, transaction

from evolution.adapters.formats.traces import assemble
from evolution.errors import LoopError, StaleState
from evolution.loop.failure_rules import from_json
from evolution.loop.masking import Masker, current_masker
from evolution.loop.pushed import PushReport, store_pushed
from evolution.loop.trace_parts import (
    FORGOTTEN,
    claim_parts,
    list_quiet_traces,
    list_waiting_sources,
    prune_parts,
)
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
    """Put the traces together that have been quiet for a while; those of one source keep no others from it."""
    for source_id in list_waiting_sources():
        source = Source.objects.select_related("harness").get(pk=source_id)
        try:
            from_json(source.rule)
        except LoopError:
            # Its traces wait until people have given it another.
            logger.exception("the traces of %s can't be judged", source)
            continue
        _assemble_source(source)


def _assemble_source(source: Source) -> None:
    masker, changed = current_masker(), 0
    traces = list_quiet_traces(source.pk, MOST)
    for start in range(0, len(traces), TOGETHER):
        some = traces[start : start + TOGETHER]
        try:
            changed += _assemble_some(source, some, masker)
        except (OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("traces of %s can't be stored together; each is tried by itself", source)
            changed += sum(_assemble_one(source, trace_id, masker) for trace_id in some)
    if changed:
        request_assignment(source.harness)


def _assemble_one(source: Source, trace_id: str, masker: Masker) -> int:
    """One trace by itself; one that can't be stored waits for more of it to come."""
    try:
        return _assemble_some(source, [trace_id], masker)
    except (OperationalError, InterfaceError):
        raise
    except StaleState:
        # Somebody was at its case just now: it is tried again.
        return 0
    except Exception:
        logger.exception("trace %s can't be stored", trace_id)
        with transaction.atomic():
            claim_parts(source.pk, [trace_id])
        return 0


@shared_task(name="evolution.prune_traces")
def prune_traces() -> None:
    """Forget the parts of traces of which nothing was heard for long."""
    prune_parts()


def _assemble_some(source: Source, trace_ids: list[str], masker: Masker) -> int:
    """Store the cases of some traces; returns how many are new or changed."""
    report = PushReport()
    with transaction.atomic():
        parts = defaultdict(list)
        for part in claim_parts(source.pk, trace_ids):
            parts[part.trace_id].append(part)
        records = [record for some in parts.values() for record in _read(some)]
        if records:
            store_pushed(source, [_Assembled(records)], masker, report)
    return report.new + report.updated


def _read(parts: list[TracePart]) -> list[Record]:
    """The record of one trace; none where it has nothing of an agent in it, or most of it has been forgotten."""
    if any(part.span_id == FORGOTTEN for part in parts):
        logger.info("trace %s goes on after it has been forgotten", parts[0].trace_id)
        return []
    try:
        read = assemble([part.data for part in parts])
    except Exception:
        # A mistake of the reader must not keep the other traces from being read, and is not tried again every time.
        logger.exception("trace %s can't be put together", parts[0].trace_id)
        return []
    return [record for record in read if isinstance(record, Record)]
