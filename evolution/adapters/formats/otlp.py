"""OTLP/JSON: ExportTraceServiceRequests, one object or one per line, and the same in protobuf.

    {"resourceSpans": [{"resource": {…}, "scopeSpans": [{"scope": {…}, "spans": [{"traceId": …, "spanId": …, …}]}]}]}

A record is a trace: all spans of one trace id, wherever in the file they stand; a span that can't be read is
rejected by itself. Ids are hex or base64, enums names or numbers. Files of the collector's file exporter, answers of
Tempo (`batches`) and older requests (`instrumentationLibrarySpans`) are taken too.
https://opentelemetry.io/docs/specs/otlp/
"""

from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evolution.adapters.formats.items import Item, Where
from evolution.adapters.formats.otlp_values import (
    first_of,
    read_attributes,
    read_id,
    read_nanoseconds,
    read_state,
)
from evolution.adapters.formats.shapes import as_dict, as_list, as_text
from evolution.adapters.formats.traces import read_traces
from evolution.adapters.formats.values import RecordProblem, clean
from evolution.ports import Record, Rejected

NAME = "otlp"
_RESOURCES = ("resourceSpans", "resource_spans", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans")
_SCOPE = ("scope", "instrumentationLibrary")
TRACE_ID, SPAN_ID = 16, 8


def fits(value: Any) -> bool:
    """Say whether a JSON value is a request with spans."""
    return isinstance(value, dict) and isinstance(first_of(_opened(value), _RESOURCES), list)


def read(items: Iterator[Item], where: Where) -> Iterator[Record | Rejected]:  # noqa: ARG001  ids need no file name
    """Read the traces of a file; all of it is read before the first one."""
    return read_traces(items, iter_spans, source=NAME)


def parse_protobuf(data: bytes) -> dict[str, Any]:
    """A request in protobuf as the JSON object that it stands for; RecordProblem when it is none."""
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(data)
        parsed: dict[str, Any] = MessageToDict(request)
    except (DecodeError, ValueError, RecursionError):
        raise RecordProblem(_("this is no ExportTraceServiceRequest in protobuf")) from None
    return parsed


def iter_spans(request: Any) -> Iterator[dict[str, Any] | RecordProblem]:
    """The spans of a request, as `span_tree.read_span` takes them; a RecordProblem for each that can't be read.

    What a span dictionary holds is plain JSON that PostgreSQL can store.
    """
    for group in as_list(first_of(_opened(as_dict(request)), _RESOURCES)):
        resource = read_attributes(as_dict(as_dict(group).get("resource")).get("attributes"))
        for scoped in as_list(first_of(as_dict(group), _SCOPES)):
            scope = as_text(as_dict(first_of(as_dict(scoped), _SCOPE)).get("name"))
            for span in as_list(as_dict(scoped).get("spans")):
                yield _read_span(span, scope, resource)


def _opened(value: dict[str, Any]) -> dict[str, Any]:
    """The request itself, which Tempo packs into {"trace": …}."""
    return as_dict(value.get("trace")) or value


def _read_span(span: Any, scope: str, resource: dict[str, Any]) -> dict[str, Any] | RecordProblem:
    if not isinstance(span, dict):
        return RecordProblem(_("a span is not an object"))
    trace_id = read_id(first_of(span, ("traceId", "trace_id")), TRACE_ID)
    span_id = read_id(first_of(span, ("spanId", "span_id")), SPAN_ID)
    if not trace_id or not span_id:
        return RecordProblem(_("a span has no trace id or no span id"))
    status = as_dict(span.get("status"))
    values = {
        "trace_id": trace_id,
        "span_id": span_id,
        "parent_id": read_id(first_of(span, ("parentSpanId", "parent_span_id")), SPAN_ID),
        "name": as_text(span.get("name")),
        "start": read_nanoseconds(first_of(span, ("startTimeUnixNano", "start_time_unix_nano"))),
        "end": read_nanoseconds(first_of(span, ("endTimeUnixNano", "end_time_unix_nano"))),
        "attributes": read_attributes(span.get("attributes")),
        "events": [_read_event(as_dict(event)) for event in as_list(span.get("events"))],
        "status": read_state(status.get("code")),
        "message": as_text(status.get("message")),
        "scope": scope,
        "resource": resource,
    }
    try:
        cleaned: dict[str, Any] = clean(values)
    except RecordProblem as problem:
        return problem
    return cleaned


def _read_event(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": as_text(event.get("name")),
        "time": read_nanoseconds(first_of(event, ("timeUnixNano", "time_unix_nano"))),
        "attributes": read_attributes(event.get("attributes")),
    }
