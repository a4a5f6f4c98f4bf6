"""Spans one by one: a list, or one per line, as Phoenix exports them and SDKs print them.

A record is a trace, as in `otlp`; a span that can't be read is rejected by itself. Attributes are those of
OpenInference, or of any convention that `genai_dialects` knows, flat (`llm.input_messages.0.message.role`) or nested.
Where trace and span ids stand differs: `context` or `spanContext`, or in the span itself.
https://github.com/Arize-ai/openinference/tree/main/spec
"""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Item, Where
from evolution.adapters.formats.otlp import SPAN_ID, TRACE_ID
from evolution.adapters.formats.otlp_values import (
    first_of,
    read_attributes,
    read_id,
    read_moment,
    read_state,
)
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, unpack_json
from evolution.adapters.formats.traces import read_traces
from evolution.adapters.formats.values import RecordProblem, clean
from evolution.ports import Record, Rejected

NAME = "openinference"
_CONTEXTS = ("context", "spanContext", "span_context", "SpanContext")
_TRACE_IDS = ("trace_id", "traceId", "TraceID", "context.trace_id")
_SPAN_IDS = ("span_id", "spanId", "SpanID", "context.span_id")
_PARENTS = ("parent_id", "parentId", "parentSpanId", "parent_span_id")
_PARENT_CONTEXTS = ("parentSpanContext", "parent", "Parent")
_STARTS = ("start_time", "startTime", "startTimeUnixNano", "StartTime", "timestamp")
_ENDS = ("end_time", "endTime", "endTimeUnixNano", "EndTime")
_TIMES = ("timestamp", "time", "timeUnixNano", "Time")
_ATTRIBUTES = ("attributes", "Attributes")


def fits(value: Any) -> bool:
    """Say whether a JSON value is one span: it has both ids, and attributes or a name."""
    if not isinstance(value, dict) or not all(_ids(value)):
        return False
    given = first_of(value, _ATTRIBUTES)
    return isinstance(given, dict | list) or any(
        isinstance(value.get(name), str) for name in ("name", "Name")
    )


def read(items: Iterator[Item], where: Where) -> Iterator[Record | Rejected]:  # noqa: ARG001  ids need no file name
    """Read the traces of a file; all of it is read before the first one."""
    return read_traces(items, _spans_of, source=NAME)


def _spans_of(value: Any) -> Iterator[dict[str, Any] | RecordProblem]:
    yield read_flat_span(value)


def read_flat_span(span: Any) -> dict[str, Any] | RecordProblem:
    """One span as `span_tree.read_span` takes it, or what keeps it from being read."""
    if not isinstance(span, dict):
        return RecordProblem(_("a span is not an object"))
    trace_id, span_id = _ids(span)
    if not trace_id or not span_id:
        return RecordProblem(_("a span has no trace id or no span id"))
    status = first_of(span, ("status", "Status"))
    code, message = _read_status(span, status)
    values = {
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_id": _parent(span),
        "name": as_text(first_of(span, ("name", "Name"))),
        "start": read_moment(first_of(span, _STARTS)),
        "end": read_moment(first_of(span, _ENDS)),
        "attributes": _attributes(span),
        "events": [_read_event(as_dict(event)) for event in as_list(first_of(span, ("events", "Events")))],
        "status": read_state(code),
        "message": as_text(message),
        "scope": as_text(_scope(span).get("name")),
        "resource": read_attributes(as_dict(first_of(span, ("resource", "Resource"))).get("attributes")),
    }
    try:
        cleaned: dict[str, Any] = clean(values)
    except RecordProblem as problem:
        return problem
    return cleaned


def _ids(span: dict[str, Any]) -> tuple[str, str]:
    both = {**span, **as_dict(first_of(span, _CONTEXTS))}
    span_id = first_of(both, _SPAN_IDS)
    if span_id is None and "traceId" in span:
        # The console exporter of the JavaScript SDK.
        span_id = span.get("id")
    return read_id(first_of(both, _TRACE_IDS), TRACE_ID), read_id(span_id, SPAN_ID)


def _parent(span: dict[str, Any]) -> str:
    given = first_of(span, _PARENTS)
    if given is None:
        given = first_of(as_dict(first_of(span, _PARENT_CONTEXTS)), _SPAN_IDS)
    return read_id(given, SPAN_ID)


def _attributes(span: dict[str, Any]) -> dict[str, Any]:
    """The attributes; a table of spans has a column for each, and Phoenix gives some beside them."""
    attributes = dict(read_attributes(unpack_json(first_of(span, _ATTRIBUTES))))
    prefix = "attributes."
    columns = {name.removeprefix(prefix): span[name] for name in span if name.startswith(prefix)}
    attributes.update({name: value for name, value in columns.items() if value is not None})
    kind = as_text(span.get("span_kind"))
    if kind and not kind.upper().startswith("SPAN_KIND"):
        attributes.setdefault("openinference.span.kind", kind)
    return attributes


def _read_status(span: dict[str, Any], status: Any) -> tuple[Any, Any]:
    fields = as_dict(status)
    code = first_of(fields, ("code", "status_code", "Code"))
    message = first_of(fields, ("message", "description", "Description"))
    if code is None:
        code = first_of(span, ("status_code", "statusCode")) if not isinstance(status, str | int) else status
    return code, message or first_of(span, ("status_message", "statusMessage"))


def _scope(span: dict[str, Any]) -> dict[str, Any]:
    return as_dict(
        first_of(span, ("scope", "instrumentationScope", "instrumentationLibrary", "InstrumentationScope"))
    )


def _read_event(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": as_text(first_of(event, ("name", "Name"))),
        "time": read_moment(first_of(event, _TIMES)),
        "attributes": read_attributes(first_of(event, _ATTRIBUTES)),
    }
