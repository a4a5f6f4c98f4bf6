"""OTLP: the sample files, with what each of them says as a person reads it, and the shapes of requests."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evolution.adapters.formats import otlp
from evolution.adapters.formats.items import Item
from evolution.adapters.formats.traces import assemble
from evolution.adapters.formats.values import RecordProblem
from evolution.ports import Record, Rejected
from tests.evolution.adapters.formats.spans import TRACE, WHERE, dialogue, read_request, wrap
from tests.evolution.intake import DATA, needs_data

OTLP = DATA / "otlp"
# What each file holds, read by eye: the number in its name, and the conversation as (role, beginning of the text).
CONVERSATIONS = {
    "00": [
        ("user", "What is LLM Observability?"),
        ("assistant", "LLM Observability stands for logs, metrics,"),
    ],
    "02": [
        ("system", "You are a helpful assistant."),
        ("user", "What is the capital of France?"),
        ("assistant", "The capital of France is Paris."),
    ],
    "04": [("user", "genkitInput"), ("assistant", "genkitOutput")],
    "12": [("user", "allMessages"), ("assistant", "Congratulations! You've won by placing your bet")],
    "16": [
        ("system", "systemInstructions"),
        ("user", "allMessages"),
        ("assistant", "Async programming in Python offers several benefits."),
    ],
    "28": [
        ("system", "You are a helpful assistant."),
        ("user", "What is the weather today?"),
        ("assistant", "I don't have access to real-time weather data."),
    ],
    "34": [("user", "What is 2 + 2?")],
    "36": [("user", "prompt content"), ("assistant", "completion content")],
    "56": [("user", "test"), ("assistant", "AI response text")],
    "60": [("user", "hello")],
}
TOOLS = {
    "10": ("roulette_wheel", {"square": 18}, "winner"),
    "58": ("bake_cake", {"query": "much duplo"}, {"result": "particularly juicy cake"}),
}
# Traces about an agent, of which the file has token counts or names alone.
SILENT = {"14", "40", "42", "44", "46", "48", "50", "52", "54"}
# Spans without ids, and 38: a trace with nothing of an agent.
UNREADABLE = {"06", "08", "18", "20", "22", "24", "26", "30", "32", "38"}


def read_sample(number: str) -> Record | Rejected:
    (path,) = OTLP.glob(f"fixture_{number}_*")
    (found,) = otlp.read(iter([Item(1, json.loads(path.read_text()))]), WHERE)
    return found


@needs_data
def test_every_sample_is_accounted_for() -> None:
    numbers = {path.name.split("_")[1] for path in OTLP.glob("*.json")}
    assert numbers == {*CONVERSATIONS, *TOOLS, *SILENT, *UNREADABLE}


@needs_data
@pytest.mark.parametrize("number", sorted(CONVERSATIONS))
def test_samples_hold_these_conversations(number: str) -> None:
    record = read_sample(number)
    assert isinstance(record, Record)
    wanted = CONVERSATIONS[number]
    said = dialogue(record)
    assert [role for role, *_rest in said] == [role for role, _text in wanted]
    assert all(text.startswith(begin) for (_role, text), (_same, begin) in zip(said, wanted, strict=True))


@needs_data
@pytest.mark.parametrize("number", sorted(TOOLS))
def test_samples_of_a_tool_hold_its_call(number: str) -> None:
    record = read_sample(number)
    assert isinstance(record, Record)
    (call,) = record.trajectory["tool_calls"]
    assert (call["name"], call["arguments"], call["result"]) == TOOLS[number]
    assert (call["error"], record.errors) == (None, ())


@needs_data
@pytest.mark.parametrize("number", sorted(SILENT))
def test_samples_without_content_are_records_that_say_nothing(number: str) -> None:
    record = read_sample(number)
    assert isinstance(record, Record)
    assert (record.trajectory["messages"], record.failed, record.has_status) == ([], None, True)


@needs_data
@pytest.mark.parametrize("number", sorted(UNREADABLE))
def test_samples_without_ids_or_an_agent_are_rejected_with_the_reason(number: str) -> None:
    rejected = read_sample(number)
    assert isinstance(rejected, Rejected)
    assert rejected.reason.startswith(("a span has no trace id", "a span is not an object", "trace 2cce18f7"))


@needs_data
def test_a_sample_s_figures() -> None:
    record = read_sample("00")
    assert isinstance(record, Record)
    (call,) = record.trajectory["calls"]
    assert (call["prompt_tokens"], call["completion_tokens"], call["finish_reason"]) == (14, 96, "stop")
    # 1738074846843448248 - 1738074845669299666 ns
    assert call["ms"] == pytest.approx(1174.148582)
    assert record.happened_at is not None
    assert abs(record.happened_at - datetime(2025, 1, 28, 14, 34, 5, 669299, tzinfo=UTC)) < timedelta(
        milliseconds=1
    )
    # An unsigned 64-bit number, which a double would round to …616.
    assert record.context["attributes"]["gen_ai.request.max_tokens"] == 18446744073709551615


@needs_data
def test_ids_as_lists_of_bytes() -> None:
    record = read_sample("40")
    assert isinstance(record, Record)
    # 149, 243, 185, 38, … in hex
    assert record.source_id == "95f3b926c7d009925bcb5dbc27311120"
    assert record.context["session"] == "original-session"


def plain_span(**fields: Any) -> dict[str, Any]:
    attributes = [{"key": "gen_ai.prompt.0.content", "value": {"stringValue": "hi"}}]
    return {
        "traceId": TRACE,
        "spanId": "00f067aa0ba902b7",
        "name": "chat",
        "attributes": attributes,
        **fields,
    }


@pytest.mark.parametrize(
    "request_",
    [
        {"resource_spans": [{"scope_spans": [{"spans": [plain_span()]}]}]},
        {"batches": [{"instrumentationLibrarySpans": [{"spans": [plain_span()]}]}]},
        {"trace": {"resourceSpans": [{"scopeSpans": [{"spans": [plain_span()]}]}]}},
        # base64 of the same ids
        wrap(plain_span(traceId="S/kvNXezTaajzpKdDg5HNg==", spanId="APBnqgupArc=")),
        wrap(plain_span(traceId=TRACE.upper())),
        wrap(plain_span(traceId="4bf92f35-77b3-4da6-a3ce-929d0e0e4736")),
    ],
)
def test_all_shapes_of_a_request_are_the_same_trace(request_: dict[str, Any]) -> None:
    assert otlp.fits(request_)
    (record,) = read_request(request_)
    assert isinstance(record, Record)
    assert (record.source, record.source_id, dialogue(record)) == ("otlp", TRACE, [("user", "hi")])


def test_a_trace_is_put_together_from_all_lines_of_the_file() -> None:
    child = plain_span(spanId="00f067aa0ba902b8", parentSpanId="00f067aa0ba902b7", name="tool")
    other = plain_span(traceId="5bf92f3577b34da6a3ce929d0e0e4736")
    records = read_request(wrap(plain_span()), wrap(other), wrap(child))
    assert [(type(record).__name__, record.line) for record in records] == [("Record", 1), ("Record", 2)]


def test_a_bad_span_costs_no_other_one() -> None:
    bad: list[Any] = [
        plain_span(traceId=""),
        "no span",
        plain_span(spanId="0000000000000000"),
        plain_span(traceId="0" * 32),
    ]
    *rejected, record = read_request(wrap(*bad, plain_span()))
    assert all(isinstance(item, Rejected) for item in rejected)
    assert [item.number for item in rejected if isinstance(item, Rejected)] == [1, 2, 3, 4]
    assert isinstance(record, Record)


def test_a_line_that_is_broken_is_rejected_where_it_stands() -> None:
    items = [Item(1, wrap(plain_span())), Item(2, RecordProblem("not JSON"))]
    rejected, record = otlp.read(iter(items), WHERE)
    assert rejected == Rejected(2, "not JSON")
    assert isinstance(record, Record)


@pytest.mark.parametrize(
    ("status", "errors"),
    [
        ({"code": 2, "message": "quota"}, ("chat: quota",)),
        ({"code": "STATUS_CODE_ERROR"}, ("chat: error",)),
        ({"code": "STATUS_CODE_OK"}, ()),
        ({"code": 1}, ()),
        ({}, ()),
    ],
)
def test_states_are_numbers_or_names(status: dict[str, Any], errors: tuple[str, ...]) -> None:
    (record,) = read_request(wrap(plain_span(status=status)))
    assert isinstance(record, Record)
    assert record.errors == errors


def test_values_of_attributes_keep_their_types_and_digits() -> None:
    values = [
        {"key": "a", "value": {"intValue": "9007199254740993"}},
        {"key": "b", "value": {"arrayValue": {"values": [{"boolValue": True}, {"doubleValue": "NaN"}]}}},
        {"key": "c", "value": {"kvlistValue": {"values": [{"key": "d", "value": {"string_value": "x"}}]}}},
        {"key": "e", "value": {}},
    ]
    (span,) = otlp.iter_spans(wrap(plain_span(attributes=values)))
    assert isinstance(span, dict)
    assert span["attributes"] == {"a": 9007199254740993, "b": [True, "NaN"], "c": {"d": "x"}, "e": None}


def test_what_postgresql_can_t_store_is_escaped_in_a_span() -> None:
    (span,) = otlp.iter_spans(wrap(plain_span(name="a\x00b\ud800")))
    assert isinstance(span, dict)
    assert span["name"] == "a\\u0000b\\ud800"


def test_protobuf_is_read_as_the_same_trace() -> None:
    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id = bytes.fromhex(TRACE), bytes.fromhex("00f067aa0ba902b7")
    span.start_time_unix_nano = 1746026930 * 10**9
    span.status.code = 2
    attribute = span.attributes.add(key="gen_ai.prompt.0.content")
    attribute.value.string_value = "你好"
    spans = [
        span
        for span in otlp.iter_spans(otlp.parse_protobuf(request.SerializeToString()))
        if isinstance(span, dict)
    ]
    (record,) = assemble(spans)
    assert isinstance(record, Record)
    assert (record.source_id, dialogue(record), record.errors) == (TRACE, [("user", "你好")], ("error",))
    assert record.happened_at == datetime(2025, 4, 30, 15, 28, 50, tzinfo=UTC)


@pytest.mark.parametrize("data", [b"\xff\xff", b"{}", b'{"resourceSpans": []}'])
def test_what_is_no_protobuf_is_refused(data: bytes) -> None:
    with pytest.raises(RecordProblem, match="protobuf"):
        otlp.parse_protobuf(data)


@pytest.mark.parametrize(
    "value", [None, [], "x", {}, {"resourceSpans": {}}, {"trace": {"id": 1}, "observations": []}]
)
def test_what_is_no_request(value: object) -> None:
    assert not otlp.fits(value)
