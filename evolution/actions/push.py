"""What machines do: push records of any known format, and spans of traces; who pushes is known by a source's token."""

import io
import re
from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.detect import open_stream
from evolution.adapters.formats.values import RecordProblem
from evolution.errors import LoopError
from evolution.loop.masking import MaskingError, current_masker
from evolution.loop.pushed import PushReport, note_seen, store_pushed
from evolution.loop.trace_parts import Part, store_parts
from evolution.models import Source
from evolution.tasks.assigning import request_assignment


class SourceDisabled(LoopError):
    """The source exists, and may not push."""


def push_cases(source: Source, data: bytes, *, fmt: str = "", name: str = "push") -> PushReport:
    """Take what a source pushed into the inbox; the same again changes nothing.

    Raises SourceDisabled, and BrokenInput for a format that there is none of; what can't be read is a problem of the
    report, and costs nothing beside it.
    """
    _check_enabled(source)
    report = PushReport()
    files = open_stream(io.BytesIO(data), name, fmt or source.format, source.mapping)
    try:
        store_pushed(source, files, current_masker(), report)
    finally:
        if report.new or report.updated:
            request_assignment(source.harness)
    note_seen(source)
    return report


def push_spans(source: Source, spans: Iterable[dict[str, Any] | RecordProblem]) -> list[str]:
    """Keep the spans, masked, until their traces are whole; returns why some can't be kept. Raises SourceDisabled."""
    _check_enabled(source)
    masker, parts, problems = current_masker(), [], []
    for span in spans:
        try:
            parts.append(_mask(span, masker.mask_part))
        except (RecordProblem, MaskingError) as problem:
            problems.append(masker.mask_text(str(problem)))
    store_parts(source, parts)
    note_seen(source)
    return problems


def _mask(span: dict[str, Any] | RecordProblem, mask: Any) -> Part:
    if isinstance(span, RecordProblem):
        raise span
    trace_id, span_id = span["trace_id"], span["span_id"]
    if not (_TRACE_ID.fullmatch(trace_id) and _SPAN_ID.fullmatch(span_id)):
        raise RecordProblem(_("a trace id has 16 bytes and a span id 8"))
    masked, _counts = mask({name: value for name, value in span.items() if name not in _IDS})
    return Part(trace_id, span_id, masked | {name: span[name] for name in _IDS if name in span})


_TRACE_ID, _SPAN_ID = re.compile("[0-9a-f]{16}(?:[0-9a-f]{16})?"), re.compile("[0-9a-f]{8}(?:[0-9a-f]{8})?")
# In hex, which a rule may take for something else, and by which spans find their parents.
_IDS = ("trace_id", "span_id", "parent_id", "start", "end")


def _check_enabled(source: Source) -> None:
    if not source.is_enabled:
        raise SourceDisabled(_("the source %(name)s is disabled") % {"name": source.name})
