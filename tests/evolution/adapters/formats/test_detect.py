import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evolution.adapters.formats.detect import read_file, read_records
from evolution.errors import BrokenInput
from evolution.ports import Record, Rejected
from tests.evolution.intake import TAU_BENCH, needs_data


def read(content: str | bytes, name: str = "cases.jsonl", fmt: str = "auto") -> list[Any]:
    return list(read_records(content.encode() if isinstance(content, str) else content, name, fmt))


def result(**fields: Any) -> dict[str, Any]:
    traj = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    return {"task_id": 1, "trial": 0, "reward": 0.0, "info": {}, "traj": traj, **fields}


@needs_data
def test_tau_bench_has_its_published_number_of_failures() -> None:
    records = [record for record in read_file(TAU_BENCH) if isinstance(record, Record)]
    assert (len(records), sum(record.failed for record in records)) == (200, 116)
    failed_of_task: dict[str, int] = {}
    for record in records:
        task = record.source_id.split("/")[1]
        failed_of_task[task] = failed_of_task.get(task, 0) + record.failed
    failures = list(failed_of_task.values())
    # Of 50 tasks in 4 trials, as the sample data's own description counts them.
    assert (failures.count(0), failures.count(4), len(failures)) == (10, 14, 50)


@needs_data
def test_tau_bench_keeps_no_right_answer() -> None:
    record = next(iter(read_file(TAU_BENCH)))
    assert isinstance(record, Record)
    assert "instruction" not in json.dumps(record.context)
    assert "gt_data_hash" not in json.dumps([record.context, record.scores, record.symptom])


def test_a_run_that_ended_in_an_error_is_no_failure() -> None:
    (rejected,) = read(json.dumps([result(info={"error": "timeout"}, traj=[])]), "r.json")
    assert isinstance(rejected, Rejected)
    assert "timeout" in rejected.reason


def test_a_bad_number_costs_only_its_own_record() -> None:
    good, bad = json.dumps(result()), json.dumps(result(task_id=2, reward=float("nan")))
    huge = json.dumps(result(task_id=3)).replace('"trial": 0', '"trial": 1e999')
    records = read(f"[{good},\n{bad},\n{huge}]", "r.json")
    assert [type(record) for record in records] == [Record, Rejected, Rejected]
    assert [record.line for record in records] == [1, 2, 3]


def test_long_integers_keep_every_digit() -> None:
    number = 2**64 + 1
    (record,) = read(json.dumps({"request": "hi", "context": {"order": number}}))
    assert record.context == {"order": number}


def test_what_postgresql_refuses_becomes_visible() -> None:
    (record,) = read('{"request": "a\\u0000b\\ud800c", "symptom": "\\ud83d\\ude00"}')
    assert record.request["danmaku"][0]["text"] == "a\\u0000b\\ud800c"
    assert record.symptom == "😀"


def test_a_broken_line_costs_only_itself() -> None:
    records = read(b'{"request": "a"}\n{"request": \n\xff\n\n{"request": "b"}\n')
    assert [type(record) for record in records] == [Record, Rejected, Rejected, Record]
    assert [record.line for record in records] == [1, 2, 3, 5]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b'[{"task_id": 1,\n "reward": 0.0', "cases.json, line 2"),
        (b'[{"request": "a"}\n{"request": "b"}]', "line 2, column 1"),
        (b"\x89PNG\r\n\x1a\n\xff", "line 1"),
        (b'[{"request": "\xff"}]', "not UTF-8"),
        (b"[" * 100_000, "nested too deep"),
        (b'[{"question": "a"}]', "no known format"),
        (b"hello\nworld", "line 1"),
    ],
)
def test_a_file_that_cannot_be_read_says_where_and_why(content: bytes, said: str) -> None:
    with pytest.raises(BrokenInput, match=said):
        read(content, "cases.json")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_files_of_windows_tools_are_read(encoding: str) -> None:
    (record,) = read('{"request": "多少钱"}\r\n'.encode(encoding))
    assert record.request["danmaku"][0]["text"] == "多少钱"


def test_one_object_over_many_lines_is_one_record() -> None:
    (record,) = read(json.dumps({"request": "hi", "reply": "hello"}, indent=2))
    assert record.reply == "hello"


@pytest.mark.parametrize(
    "extra", [{"tags": ["a", "b"]}, {"context": {"n": [1, 2]}}, {"scores": {"accuracy": 0}}]
)
def test_an_object_laid_out_with_lists_in_it_is_one_record(extra: dict[str, Any]) -> None:
    (record,) = read("\n" + json.dumps({"request": "hi", **extra}, indent=1))
    assert (record.line, record.request["danmaku"][0]["text"]) == (2, "hi")


def test_a_broken_first_line_leaves_the_others_of_json_lines() -> None:
    records = read('{"request": \n{"request": "b"}\n')
    assert [type(record) for record in records] == [Rejected, Record]


def test_records_on_one_line_are_told_apart_by_their_number() -> None:
    bad = result(task_id=2, reward=None)
    records = read(json.dumps([result(), bad]), "r.json")
    assert (records[1].line, records[1].number) == (1, 2)


ODD: tuple[Any, ...] = (None, True, 5, 1.5, "x", "", [], {}, [5], [None], ["x"], {"x": 5}, [[]], [{"x": []}])


def variants(value: Any) -> Iterator[Any]:
    """The value with each of its parts, at every depth, replaced by something else."""
    yield from ODD
    if isinstance(value, dict):
        yield from ({**value, key: odd} for key, part in value.items() for odd in variants(part))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from ([*value[:place], odd, *value[place + 1 :]] for odd in variants(part))


MESSAGES = [
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "1", "content": "{}"},
    {"role": "assistant", "function_call": {"name": "load_skill", "arguments": '{"name": "x"}'}},
]
TRAJECTORY = {
    "status": "ok",
    "messages": MESSAGES,
    "tool_calls": [{"id": "1", "name": "f", "arguments": {}, "result": {}}],
    "hooks": [{"turn": 1, "hook": "h", "outcome": "pass"}],
    "skills_loaded": ["x"],
}
REQUEST = {"danmaku": [{"user": "u", "text": "hi"}], "history": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    "whole",
    [
        result(traj=MESSAGES, info={"source": "s", "reward_info": {"info": {"outputs": {"a": 0}}}}),
        {"id": "a", "messages": MESSAGES, "context": {"room": {}}, "scores": {"accuracy": 0}, "tags": ["t"]},
        {"request": REQUEST, "reply": "r", "symptom": "s", "category": "c", "failed": True},
        {"request": "hi", "trajectory": TRAJECTORY},
    ],
)
def test_a_record_of_whatever_shape_costs_no_other(whole: dict[str, Any]) -> None:
    content = json.dumps([whole, *variants(whole), whole])
    records = read(content)
    assert {type(record) for record in records} == {Record, Rejected}
    assert (type(records[0]), type(records[-1])) == (Record, Record)


def test_a_file_name_that_is_not_utf8_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff.json")
    path.write_text(json.dumps([result()]))
    (record,) = read_file(path)
    assert isinstance(record, Record)
    assert record.source_id == "bad\\udcff/task-1/trial-0"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(BrokenInput, match="no format csv"):
        read("[]", fmt="csv")
