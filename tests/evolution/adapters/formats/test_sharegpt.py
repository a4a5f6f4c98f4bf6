import io
import json
from typing import Any

from evolution.adapters.formats.detect import open_stream, read_file
from evolution.ports import Record, Rejected
from tests.evolution.intake import DATA, needs_data

FILE = DATA / "sharegpt" / "glaive_toolcall_zh_demo.json"


def read(*items: dict[str, Any]) -> list[Any]:
    (opened,) = open_stream(io.BytesIO(json.dumps(items).encode()), "chats.json")
    assert opened.format == "sharegpt"
    return list(opened.records)


@needs_data
def test_every_conversation_of_the_sample_is_a_record() -> None:
    records = [record for record in read_file(FILE) if isinstance(record, Record)]
    given = json.loads(FILE.read_text())
    assert len(records) == len(given) == 300
    for record, item in zip(records, given, strict=True):
        turns = item["conversations"]
        calls = [json.loads(turn["value"]) for turn in turns if turn["from"] == "function_call"]
        said = [turn["value"] for turn in turns if turn["from"] == "gpt"]
        assert [call["name"] for call in record.trajectory["tool_calls"]] == [call["name"] for call in calls]
        assert record.request["danmaku"][0]["text"] == turns[0]["value"]
        assert record.reply == (said[-1] if said else "")
        assert len(record.context.get("tools", [])) == len(json.loads(item["tools"] or "[]"))


@needs_data
def test_a_call_has_its_arguments_and_its_result() -> None:
    record = next(iter(read_file(FILE)))
    assert isinstance(record, Record)
    (call,) = record.trajectory["tool_calls"]
    assert call["name"] == "generate_invoice"
    assert call["arguments"]["items"][1] == {"name": "香蕉", "quantity": 3, "price": 0.5}
    assert call["result"]["invoice_id"] == "INV12345"
    assert call["error"] is None


def test_what_is_no_conversation_costs_no_other() -> None:
    good = {"conversations": [{"from": "human", "value": "hi"}], "system": "be kind", "id": "a"}
    bad: list[dict[str, Any]] = [
        {"conversations": []},
        {"conversations": [5]},
        {"conversations": [{"from": "function_call", "value": "f("}]},
    ]
    records = read(good, *bad, good)
    assert [type(record) for record in records] == [Record, Rejected, Rejected, Rejected, Record]
    assert records[0].trajectory["messages"][0] == {"role": "system", "content": "be kind"}
