from typing import Any

import pytest

from evolution.adapters.formats.jsonl import read_item
from evolution.adapters.formats.values import RecordProblem


def read(**fields: Any) -> Any:
    return read_item({"request": "多少钱", **fields}, "file", 1)


@pytest.mark.parametrize(
    ("fields", "failed"),
    [
        ({}, True),
        ({"scores": {"accuracy": 1, "effectiveness": 1}}, False),
        ({"scores": {"accuracy": 1, "effectiveness": 0.5}}, True),
        ({"scores": {"accuracy": 1}, "symptom": "太长"}, True),
        ({"scores": {"accuracy": 0}, "failed": False}, False),
    ],
)
def test_what_counts_as_failed(*, fields: dict[str, Any], failed: bool) -> None:
    assert read(**fields).failed is failed


def test_records_without_id_are_named_by_their_content() -> None:
    assert read().source_id == read().source_id
    assert read().source_id != read(reply="89元").source_id
    assert read(id=17).source_id == "17"


def test_messages_give_request_reply_and_trajectory() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    record = read_item({"messages": messages, "tags": ["a"]}, "file", 1)
    assert (record.request["danmaku"][0]["text"], record.reply) == ("hi", "hello")
    assert record.trajectory["format"] == "trajectory/1"
    assert record.context == {"tags": ["a"]}


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
    ],
)
def test_what_does_not_fit_is_refused(item: dict[str, Any]) -> None:
    with pytest.raises(RecordProblem):
        read_item(item, "file", 1)
