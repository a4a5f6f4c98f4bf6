"""Spans one by one, as Phoenix and the SDKs write them."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from evolution.adapters.formats import openinference
from evolution.adapters.formats.items import Item
from evolution.ports import Record, Rejected
from tests.evolution.adapters.formats.spans import TRACE, WHERE, dialogue
from tests.evolution.intake import DATA, needs_data

HAIKU = "Lines of code align,  \nLogic dances through the night—  \nDreams in data flow."


def read(*spans: Any) -> list[Record | Rejected]:
    return list(openinference.read((Item(line, span) for line, span in enumerate(spans, 1)), WHERE))


def read_sample(name: str) -> list[Record]:
    spans = json.loads((DATA / "openinference" / name).read_text())
    assert all(openinference.fits(span) for span in spans)
    return [record for record in read(*spans) if isinstance(record, Record)]


@needs_data
def test_the_sample_s_ten_spans_are_ten_traces() -> None:
    records = read_sample("all-spans.json")
    asked = [record.request["danmaku"][0]["text"] for record in records]
    assert asked == [
        *["Write a haiku about programming."] * 2,
        *["What is 2 + 2?"] * 2,
        *["Generate a simple recipe for scrambled eggs."] * 2,
        *["Write a short poem about TypeScript."] * 2,
        # embeddings, which nobody answers
        *["The quick brown fox jumps over the lazy dog."] * 2,
    ]
    assert [bool(record.reply) for record in records] == [True] * 8 + [False] * 2


@needs_data
def test_the_sample_s_conversations() -> None:
    haiku, sums = read_sample("ai-generateText.json")
    assert dialogue(haiku) == [("user", "Write a haiku about programming."), ("assistant", HAIKU)]
    assert dialogue(sums) == [
        ("system", "You are a helpful assistant."),
        ("user", "What is 2 + 2?"),
        ("assistant", "2 + 2 equals 4."),
        ("user", "And what is 3 + 3?"),
        ("assistant", "3 + 3 equals 6."),
    ]
    (call,) = sums.trajectory["calls"]
    assert (call["turn"], call["prompt_tokens"], call["completion_tokens"], call["model"]) == (
        2,
        50,
        9,
        "gpt-4o-mini",
    )
    assert sums.happened_at == datetime(2026, 2, 3, 15, 19, 54, 23000, tzinfo=UTC)


@needs_data
def test_a_structured_answer_is_the_reply() -> None:
    recipe = json.loads(read_sample("all-spans.json")[4].reply)
    assert recipe["name"] == "Scrambled Eggs"
    assert recipe["ingredients"][0] == "2 eggs"


FLAT = {"llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi"}
SHAPES: dict[str, dict[str, Any]] = {
    "phoenix": {
        "context": {"trace_id": TRACE, "span_id": "00f067aa0ba902b7"},
        "parent_id": None,
        "span_kind": "LLM",
        "start_time": "2025-04-30T15:28:50.000000+00:00",
        "status_code": "ERROR",
        "status_message": "boom",
        "attributes": {"llm": {"input_messages": [{"message": {"role": "user", "content": "hi"}}]}},
    },
    "logical": {
        "context": {"trace_id": TRACE, "span_id": "00f067aa0ba902b7"},
        "start_time": "2025-04-30T11:28:50-04:00",
        "status_code": "ERROR",
        "status_message": "boom",
        "attributes": {"llm.input_messages": [{"message.role": "user", "message.content": "hi"}]},
    },
    "python": {
        "context": {"trace_id": f"0x{TRACE}", "span_id": "0x00f067aa0ba902b7", "trace_state": "[]"},
        "kind": "SpanKind.INTERNAL",
        "start_time": "2025-04-30T15:28:50.000000Z",
        "status": {"status_code": "ERROR", "description": "boom"},
        "attributes": FLAT,
    },
    "javascript": {
        "traceId": TRACE,
        "id": "00f067aa0ba902b7",
        "timestamp": 1746026930000000,
        "status": {"code": 2, "message": "boom"},
        "attributes": FLAT,
    },
    "go": {
        "SpanContext": {"TraceID": TRACE, "SpanID": "00f067aa0ba902b7"},
        "StartTime": "2025-04-30T15:28:50Z",
        "Status": {"Code": "Error", "Description": "boom"},
        "Attributes": [
            {"Key": key, "Value": {"Type": "STRING", "Value": value}} for key, value in FLAT.items()
        ],
    },
    "table": {
        "context.trace_id": TRACE,
        "context.span_id": "00f067aa0ba902b7",
        "start_time": 1746026930000,
        "status_code": "ERROR",
        "status_message": "boom",
        "name": "span",
        **{f"attributes.{key}": value for key, value in FLAT.items()},
    },
}


@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_writer_s_span_is_the_same_record(name: str) -> None:
    span = {"name": "span", "Name": "span", **SHAPES[name]}
    assert openinference.fits(span)
    (record,) = read(span)
    assert isinstance(record, Record)
    assert (record.source_id, dialogue(record), record.errors) == (TRACE, [("user", "hi")], ("span: boom",))
    assert record.happened_at == datetime(2025, 4, 30, 15, 28, 50, tzinfo=UTC)


def test_spans_of_one_trace_are_one_record() -> None:
    first = {"name": "root", **SHAPES["python"]}
    second = {
        **first,
        "context": {"trace_id": TRACE, "span_id": "0x00f067aa0ba902b8"},
        "parent_id": "0x00f067aa0ba902b7",
    }
    assert [type(item) for item in read(first, second)] == [Record]


def test_a_span_without_ids_is_rejected_at_its_line() -> None:
    rejected, record = read(SHAPES["python"], {"name": "x", "attributes": {}})
    assert (rejected, type(record)) == (Rejected(2, "a span has no trace id or no span id"), Record)


@pytest.mark.parametrize(
    "value",
    [None, [], {"name": "x", "attributes": {}}, {"trace_id": "a", "id": "b", "name": "run", "inputs": {}}],
)
def test_what_is_no_span(value: object) -> None:
    assert not openinference.fits(value)


def test_messages_with_parts_thinking_and_calls() -> None:
    """The examples of the specification: ordered parts, tools by index, the name of a tool that answers."""
    prefix = "llm.output_messages.0.message"
    attributes = {
        **FLAT,
        "llm.input_messages.1.message.role": "tool",
        "llm.input_messages.1.message.content": "2001",
        "llm.input_messages.1.message.tool_call_id": "call_0",
        f"{prefix}.role": "assistant",
        f"{prefix}.contents.0.message_content.type": "reasoning",
        f"{prefix}.contents.0.message_content.text": "I need the weather.",
        f"{prefix}.contents.1.message_content.type": "text",
        f"{prefix}.contents.1.message_content.text": "One moment.",
        f"{prefix}.contents.2.message_content.type": "image",
        f"{prefix}.contents.2.message_content.image.image.url": "https://example.com/a.png",
        f"{prefix}.contents.3.message_content.type": "tool_use",
        f"{prefix}.contents.3.tool_call.id": "call_1",
        f"{prefix}.contents.3.tool_call.function.name": "get_weather",
        f"{prefix}.contents.3.tool_call.function.arguments": '{"n": 1.10}',
        f"{prefix}.tool_calls.0.tool_call.id": "call_1",
        f"{prefix}.tool_calls.0.tool_call.function.name": "get_weather",
        f"{prefix}.tool_calls.0.tool_call.function.arguments": '{"n": 1.10}',
        "llm.tools.0.tool.json_schema": '{"type": "function", "function": {"name": "get_weather", "parameters": {}}}',
    }
    (record,) = read({**SHAPES["python"], "attributes": attributes})
    assert isinstance(record, Record)
    assert dialogue(record) == [
        ("user", "hi"),
        ("tool", "2001"),
        ("assistant", "One moment.\n[image: https://example.com/a.png]", ("get_weather", '{"n": 1.10}')),
    ]
    assert [call["reasoning"] for call in record.trajectory["calls"]] == ["I need the weather."]
    assert record.context["tools"][0]["function"]["name"] == "get_weather"


def test_completions_and_calls_of_the_time_before_tools() -> None:
    attributes = {
        "llm.prompts.0.prompt.text": "def fib(n):",
        "llm.output_messages.0.message.function_call_name": "run",
        "llm.output_messages.0.message.function_call_arguments_json": '{"x": 2}',
    }
    (record,) = read({**SHAPES["python"], "attributes": attributes})
    assert isinstance(record, Record)
    assert dialogue(record) == [("user", "def fib(n):"), ("assistant", None, ("run", '{"x": 2}'))]
