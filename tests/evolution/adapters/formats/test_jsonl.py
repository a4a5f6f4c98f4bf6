import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evolution.adapters.formats import jsonl
from evolution.adapters.formats.items import Where
from evolution.adapters.formats.jsonl import read_item
from evolution.adapters.formats.values import RecordProblem
from evolution.ports import Check, Feedback, Record

WHERE = Where("file.jsonl", "file")
SCHEMA = json.loads(Path(jsonl.__file__).with_name("case.schema.json").read_text())
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def read(**fields: Any) -> Record:
    return read_item({"request": "多少钱", **fields}, WHERE, 1)


def documented_example() -> dict[str, Any]:
    """The example in the module's description, which is what `import_cases --help` shows."""
    text = jsonl.__doc__ or ""
    example: dict[str, Any] = json.loads(text[text.index("    {") : text.index("`request` (an object")])
    return example


def test_the_documented_example_is_read_as_it_says() -> None:
    example = documented_example()
    jsonschema.validate(example, SCHEMA)
    record = read_item(example, WHERE, 3)
    assert record == Record(
        source="live-commerce",
        source_id="2024-06-01/17",
        failed=True,
        line=3,
        request={"danmaku": [{"user": "小美", "text": "3号链接多少钱？"}], "history": []},
        context={"room": {"current_link": 1}, "session": "live-8"},
        reply="3号链接现在59元哈。",
        symptom="券后价说错了",
        scores={"accuracy": 0, "effectiveness": 1},
        category="price",
        harness_commit=COMMIT,
        errors=("coupon service: timeout",),
        checks=(Check("price", passed=False, reason="89 expected"),),
        feedback=(Feedback("viewer", "down", "价格不对"),),
        has_status=True,
        blamed_turn=1,
        happened_at=datetime(2024, 6, 1, 12, 3, 11, tzinfo=UTC),
        tags=("double-11",),
    )


# Another value for every field of the schema.
OTHER: dict[str, Any] = {
    "id": 18, "source": "other", "request": "another", "messages": [{"role": "user", "content": "x"}],
    "tools": [{"type": "function"}], "trajectory": {"status": "failed"}, "context": {"a": 1}, "reply": "r",
    "symptom": "s", "category": "c", "tags": ["t"], "failed": False, "scores": {"a": 0.5}, "score": 0.5,
    "errors": ["e"], "checks": [{"passed": True}], "feedback": 0, "findings": [{"type": "fact"}], "blamed_turn": 2,
    "happened_at": 1717200000, "session": "s", "harness_commit": COMMIT,
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEMA["properties"])
def test_every_field_of_the_schema_is_read(name: str) -> None:
    changed = {"request": "x", "id": 17, name: OTHER[name]}
    jsonschema.validate(changed, SCHEMA)
    assert read_item(changed, WHERE, 1) != read_item({"request": "x", "id": 17}, WHERE, 1)


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({}, None),
        ({"scores": {"accuracy": 0}}, None),
        ({"scores": {"accuracy": 1}, "symptom": "太长"}, True),
        ({"symptom": "太长", "failed": False}, False),
        ({"failed": True}, True),
    ],
)
def test_failed_is_what_the_source_says(*, fields: dict[str, Any], failed: bool | None) -> None:
    assert read(**fields).failed is failed


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (
            {"scores": {"a": "0.5", "b": True, "c": None, "d": "good"}},
            {"a": 0.5, "b": 1, "c": None, "d": "good"},
        ),
        ({"score": 0}, {"score": 0}),
        ({"score": 1, "scores": {"score": 0}}, {"score": 0}),
    ],
)
def test_scores_are_numbers_where_they_can_be(given: dict[str, Any], kept: dict[str, Any]) -> None:
    assert read(**given).scores == kept


def test_short_forms_are_understood() -> None:
    record = read(
        errors=[{"type": "Timeout", "message": "5 s"}, ""], feedback=False, tags=["a", 11, "a", " "]
    )
    assert record.errors == ("Timeout: 5 s",)
    assert record.feedback == (Feedback("", value=False),)
    assert record.tags == ("a", "11")
    assert read(errors="boom").errors == ("boom",)


def test_an_empty_list_of_errors_is_a_status() -> None:
    assert (read(errors=[]).has_status, read().has_status) == (True, False)


def test_records_without_id_are_named_by_their_content() -> None:
    assert read().source_id == read().source_id
    assert read().source_id != read(reply="89元").source_id
    assert read(id=17).source_id == "17"


def test_messages_give_request_reply_and_trajectory() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    record = read_item({"messages": messages, "tools": [{"type": "function"}]}, WHERE, 1)
    assert (record.request["danmaku"][0]["text"], record.reply) == ("hi", "hello")
    assert record.trajectory["format"] == "trajectory/1"
    assert record.context == {"tools": [{"type": "function"}]}


@pytest.mark.parametrize(
    "item",
    [
        {"reply": "only"},
        {"request": {}},
        {"request": {"danmaku": "hi"}},
        {"request": {"danmaku": [], "history": [1]}},
        {"request": 5},
        {"request": "hi", "scores": []},
        {"request": "hi", "failed": "yes"},
        {"request": "hi", "trajectory": {"tool_calls": ["x"]}},
        {"request": "hi", "messages": []},
        {"request": "hi", "errors": [5]},
        {"request": "hi", "checks": [{"name": "x"}]},
        {"request": "hi", "checks": ["x"]},
        {"request": "hi", "feedback": [[]]},
        {"request": "hi", "feedback": {"value": []}},
        {"request": "hi", "tags": [{}]},
        {"request": "hi", "findings": ["x"]},
        {"request": "hi", "blamed_turn": 0},
        {"request": "hi", "blamed_turn": 2**31},
        {"request": "hi", "happened_at": "yesterday"},
        {"request": "hi", "happened_at": True},
    ],
)
def test_what_does_not_fit_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(RecordProblem):
        read_item(item, WHERE, 1)


def test_a_mapping_takes_fields_from_where_it_says() -> None:
    item = {
        "trace": {"input": [{"text": "hi"}], "eval": {"a/b": 0.5}},
        "tags": ["t"],
        "out": "hello",
        "request": 5,
    }
    mapping = {
        "request": "trace.input.0.text",
        "scores.quality": "/trace/eval/a~1b",
        "reply": "out",
        "symptom": "no",
    }
    record = read_item(item, Where("f", "f", mapping), 1)
    assert record.request["danmaku"][0]["text"] == "hi"
    assert (record.reply, record.scores, record.tags) == ("hello", {"quality": 0.5}, ("t",))
