"""Spans by hand, for the tests of their readers."""

import json
from collections.abc import Iterator
from typing import Any

from evolution.adapters.formats import otlp
from evolution.adapters.formats.items import Item, Where
from evolution.adapters.formats.traces import assemble
from evolution.ports import Record, Rejected

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
# 2025-04-30T15:28:50Z in nanoseconds
START = 1746026930 * 10**9
MS = 10**6
WHERE = Where("spans.json", "spans")


def make_span(number: int, parent: int = 0, /, **fields: Any) -> dict[str, Any]:
    """The span with this number; it starts as many milliseconds after START, and lasts 10 unless `end` says more."""
    start = START + number * MS
    values = {
        "trace_id": TRACE,
        "span_id": f"{number:016x}",
        "parent_id": f"{parent:016x}" if parent else "",
        "name": f"span {number}",
        "start": start,
        "end": start + 10 * MS,
        "attributes": {},
        "events": [],
        "status": "",
        "message": "",
        "scope": "",
        "resource": {},
    }
    return {**values, **fields}


def model_span(number: int, parent: int, inputs: list[Any], output: Any, **fields: Any) -> dict[str, Any]:
    """A model call by OpenTelemetry's convention of today; messages are in OpenAI's shape."""
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(inputs),
        "gen_ai.output.messages": json.dumps([output] if output else []),
        **fields.pop("attributes", {}),
    }
    return make_span(number, parent, attributes=attributes, **fields)


def tool_span(
    number: int, parent: int, name: str, arguments: Any, result: Any, **fields: Any
) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": json.dumps(arguments),
        **({} if result is None else {"gen_ai.tool.call.result": json.dumps(result)}),
        **fields.pop("attributes", {}),
    }
    return make_span(number, parent, attributes=attributes, **fields)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def says(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def calls(name: str, identity: str, arguments: str = "{}") -> dict[str, Any]:
    call = {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def answers(identity: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": text}


def read_one(*spans: dict[str, Any]) -> Record:
    """The record of the one trace that these spans are of."""
    (record,) = assemble(spans)
    assert isinstance(record, Record)
    return record


def read_with(attributes: dict[str, Any], *events: dict[str, Any], **fields: Any) -> Record:
    """The record of a trace of one span with these attributes and events."""
    return read_one(make_span(1, attributes=attributes, events=list(events), **fields))


def event(name: str, **attributes: Any) -> dict[str, Any]:
    return {"name": name, "time": START, "attributes": attributes}


def read_request(*requests: dict[str, Any]) -> list[Record | Rejected]:
    """What the reader makes of a file with these OTLP requests, one on each line."""
    items = (Item(line, request) for line, request in enumerate(requests, 1))
    return list(otlp.read(items, WHERE))


def wrap(*spans: Any, **resource: str) -> dict[str, Any]:
    """An OTLP request with these spans, which are in OTLP's own shape."""
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in resource.items()]
    scopes = [{"scope": {"name": "test"}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": scopes}]}


def dialogue(record: Record) -> list[tuple[Any, ...]]:
    """What was said in a record, short: role, text, and names and arguments of calls."""
    return list(_lines(record.trajectory["messages"]))


def _lines(messages: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    for message in messages:
        made = [
            (call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls", [])
        ]
        yield (message["role"], message["content"], *made)
