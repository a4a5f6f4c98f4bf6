import json
from typing import Any

import pytest

from evolution.adapters.formats import langsmith
from evolution.adapters.formats.items import Item, Where
from evolution.ports import Feedback, Record, Rejected
from tests.evolution.intake import DATA, needs_data

FOLDER = DATA / "langsmith"
WHERE = Where("runs.json", "runs")


def read(*values: Any) -> list[Record | Rejected]:
    return list(langsmith.read((Item(line, value) for line, value in enumerate(values, 1)), WHERE))


def only(*values: Any) -> Record:
    (record,) = read(*values)
    assert isinstance(record, Record)
    return record


def run(identity: str, kind: str = "llm", **fields: Any) -> dict[str, Any]:
    started = {"start_time": "2024-10-08T04:50:33+00:00", "end_time": "2024-10-08T04:50:35+00:00"}
    return {"id": identity, "run_type": kind, "name": kind, "trace_id": "root", **started, **fields}


def open_items(name: str) -> list[Any]:
    value = json.loads((FOLDER / name).read_text())
    return value if isinstance(value, list) else [value]


@needs_data
@pytest.mark.parametrize(
    ("name", "asked", "starts", "tokens"),
    [
        ("wrap_openai_chat.json", "Write a bash", "Certainly! Below is a Bash script", (43, 2144)),
        ("wrap_openai_chat_non-stream_usage.json", "howdy", "Howdy! How can I assist you today?", (9, 9)),
        (
            "wrap_openai_chat_async_stream_no_usage.json",
            "howdy",
            "Howdy! How can I assist you today?",
            (0, 0),
        ),
    ],
)
def test_a_create_and_its_update_are_one_run(
    name: str, asked: str, starts: str, tokens: tuple[int, int]
) -> None:
    record = only(*open_items(name))
    assert record.request["danmaku"][0]["text"].startswith(asked)
    assert record.reply.startswith(starts)
    usage = record.trajectory["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == tokens
    assert record.has_status


@needs_data
def test_each_of_the_sample_files_holds_one_run() -> None:
    records = [only(*open_items(path.name)) for path in FOLDER.glob("*.json")]
    assert len({record.source_id for record in records}) == len(list(FOLDER.glob("*.json")))
    assert all(record.request["danmaku"] for record in records)


@needs_data
def test_a_run_without_an_update_has_not_ended_and_says_nothing_of_success() -> None:
    record = only(*open_items("wrap_openai_chat_stream_usage.json"))
    assert (record.reply, record.has_status, record.errors) == ("", False, ())


def test_the_runs_of_a_tree_are_one_record_wherever_they_stand() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "get_price", "arguments": '{"link": 3}'}}
    asked = {"messages": [[{"role": "user", "content": "price?"}]]}
    answer = {"choices": [{"message": {"role": "assistant", "content": None, "tool_calls": [call]}}]}
    record = only(
        run("tool", "tool", name="get_price", parent_run_id="root", outputs={"output": "89"}),
        run("llm", parent_run_id="root", inputs=asked, outputs=answer),
        run("root", "chain", inputs={"question": "price?"}, outputs={"output": "It costs 89."}),
    )
    assert record.source_id == "root"
    assert [message["role"] for message in record.trajectory["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    assert record.trajectory["tool_calls"][0]["result"] == 89
    assert record.reply == "It costs 89."


def test_messages_that_langchain_serialised_are_read() -> None:
    def made(kind: str, **fields: Any) -> dict[str, Any]:
        return {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "messages", kind],
            "kwargs": fields,
        }

    called = [{"name": "find", "args": {"q": "x"}, "id": "c1", "type": "tool_call"}]
    sent = [made("SystemMessage", content="be brief"), made("HumanMessage", content="hi")]
    answer = {"generations": [[{"text": "", "message": made("AIMessage", content="", tool_calls=called)}]]}
    record = only(run("root", inputs={"messages": [sent]}, outputs=answer))
    assert [m["role"] for m in record.trajectory["messages"]] == ["system", "user", "assistant"]
    assert record.trajectory["tool_calls"][0]["arguments"] == {"q": "x"}


def test_errors_and_feedback_are_kept() -> None:
    stats = {"user_score": {"n": 2, "avg": 0.5}}
    record = only(
        run("root", "chain", inputs={"input": "hi"}, error="ValueError('no')", feedback_stats=stats)
    )
    assert record.errors == ("chain: ValueError('no')",)
    assert record.feedback == (Feedback("user_score", 0.5),)


def test_runs_under_their_parents_are_read_too() -> None:
    child = run(
        "c",
        inputs={"messages": [{"role": "user", "content": "hi"}]},
        outputs={"role": "assistant", "content": "yes"},
    )
    record = only({**run("root", "chain"), "child_runs": [child]})
    assert record.reply == "yes"


def test_a_run_without_an_id_costs_no_other() -> None:
    rejected, fine = read({"post": [{"run_type": "llm"}]}, run("root", inputs={"input": "hi"}))
    assert isinstance(rejected, Rejected)
    assert isinstance(fine, Record)


@pytest.mark.parametrize("value", [3, {"post": [{"a": 1}]}, {"id": "1"}, {"messages": []}, {"trace_id": "1"}])
def test_other_values_are_no_runs(value: object) -> None:
    assert not langsmith.fits(value)
