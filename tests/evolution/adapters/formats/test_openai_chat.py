import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest

from evolution.adapters.formats.detect import open_stream, read_file
from evolution.ports import Record, Rejected
from tests.evolution.intake import DATA, needs_data

ASKED = {"model": "m", "messages": [{"role": "user", "content": "多少钱"}], "tools": [{"type": "function"}]}
ANSWER = {
    "id": "chatcmpl-1",
    "created": 1717200000,
    "model": "m-2024",
    "choices": [{"message": {"role": "assistant", "content": "89元"}}, {"message": {"content": "other"}}],
}


def read(*lines: Any) -> list[Any]:
    content = "\n".join(json.dumps(line) for line in lines).encode()
    (opened,) = open_stream(io.BytesIO(content), "log.jsonl")
    assert opened.format == "openai-chat"
    return list(opened.records)


@needs_data
@pytest.mark.parametrize(
    ("name", "count"),
    [("drone_training", 103), ("toy_chat_fine_tuning", 5), ("toy_chat_fine_tuning_v1", 6)],
)
def test_every_line_of_the_samples_is_a_record(name: str, count: int) -> None:
    records = list(read_file(DATA / "openai_chat" / f"{name}.jsonl"))
    assert [record.line for record in records] == list(range(1, count + 1))
    assert all(isinstance(record, Record) for record in records)


@needs_data
def test_a_call_without_content_is_a_call() -> None:
    record = next(iter(read_file(DATA / "openai_chat" / "drone_training.jsonl")))
    assert isinstance(record, Record)
    # As the file's first line reads.
    assert record.request["danmaku"][0]["text"].startswith("Let's get the drone in the air")
    (call,) = record.trajectory["tool_calls"]
    assert (call["name"], call["arguments"]) == ("takeoff_drone", {"altitude": 100})
    assert record.context["tools"][0]["function"]["name"] == "takeoff_drone"


@pytest.mark.parametrize(
    "line",
    [
        {"request": ASKED, "response": ANSWER},
        {"body": ASKED, "response": {"status_code": 200, "body": ANSWER}},
        {**ASKED, **ANSWER, "messages": ASKED["messages"]},
    ],
)
def test_a_logged_call_is_what_was_asked_and_answered(line: dict[str, Any]) -> None:
    (record,) = read(line)
    assert (record.request["danmaku"][0]["text"], record.reply) == ("多少钱", "89元")
    assert (record.source_id, record.context) == ("chatcmpl-1", {"model": "m-2024", "tools": ASKED["tools"]})
    assert record.happened_at == datetime(2024, 6, 1, tzinfo=UTC)
    assert (record.failed, record.errors, record.has_status) == (None, (), True)


@pytest.mark.parametrize(
    ("line", "errors"),
    [
        (
            {"request": ASKED, "response": {"error": {"code": "rate_limit", "message": "slow down"}}},
            ("rate_limit: slow down",),
        ),
        ({"custom_id": "a", "error": "expired", "response": {"body": {"choices": []}}}, ("expired",)),
        (
            {"request": ASKED, "response": {"status_code": 500, "body": {"error": {"message": "x"}}}},
            ("x", "HTTP 500"),
        ),
    ],
)
def test_a_call_that_failed_has_its_error(line: dict[str, Any], errors: tuple[str, ...]) -> None:
    (record,) = read(line)
    assert (record.errors, record.has_status) == (errors, True)


def test_an_answer_of_the_batch_api_alone_is_a_record() -> None:
    (record,) = read({"custom_id": "row-7", "response": {"status_code": 200, "body": ANSWER}, "error": None})
    assert (record.source_id, record.reply) == ("row-7", "89元")


def test_conversations_on_their_lines_are_records() -> None:
    first, second = read([*ASKED["messages"]], [{"role": "user", "content": "hi"}])
    assert (first.request["danmaku"][0]["text"], second.line) == ("多少钱", 2)
    assert first.source_id != second.source_id


def test_messages_that_stand_alone_are_one_conversation() -> None:
    (record,) = read(*ASKED["messages"], {"role": "assistant", "content": "89元"})
    assert (record.reply, record.line) == ("89元", 1)


def test_a_conversation_with_fields_of_ours_among_others_keeps_them() -> None:
    records = read({"messages": ASKED["messages"]}, {"messages": ASKED["messages"], "symptom": "错"})
    assert [record.symptom for record in records] == ["", "错"]


def test_a_bad_conversation_costs_no_other() -> None:
    records = read(
        {"messages": ASKED["messages"]}, {"messages": []}, {"messages": [{"content": 1}]}, {"x": 1}
    )
    assert [type(record) for record in records] == [Record, Rejected, Rejected, Rejected]
