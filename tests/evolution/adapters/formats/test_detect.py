import gzip
import hashlib
import io
import json
import os
import random
import tracemalloc
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evolution.adapters.formats.detect import check_format, open_records, open_stream, read_file, read_records
from evolution.errors import BrokenInput
from evolution.ports import Record, Rejected


def read(content: str | bytes, name: str = "cases.jsonl", fmt: str = "auto") -> list[Any]:
    return list(read_records(content.encode() if isinstance(content, str) else content, name, fmt))


def result(**fields: Any) -> dict[str, Any]:
    traj = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]
    return {"task_id": 1, "trial": 0, "reward": 0.0, "info": {}, "traj": traj, **fields}


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
        (b"\x89PNG\r\n\x1a\n\0\0\xff", "no known format"),
        (b"hello\nworld", "no known format"),
        (b"hello\nworld".replace(b"\n", b"\0"), "no known format"),
        (b"5", "no known format"),
        (b"\x1f\x8bbroken", "can't be read"),
        (b"PK\x03\x04broken", "can't be read"),
        (b"[" * 100_000, "nested too deep"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_rejection(content: bytes, said: str) -> None:
    (rejected,) = read(content, "cases.json")
    assert isinstance(rejected, Rejected)
    assert rejected.line == 1
    assert said in rejected.reason


def test_each_record_of_no_known_format_is_rejected() -> None:
    records = read('{"a": 1}\n{"b": 2}\n')
    assert [(type(record), record.line) for record in records] == [(Rejected, 1), (Rejected, 2)]


def test_a_list_that_breaks_off_keeps_what_came_before() -> None:
    content = json.dumps([result(), result(task_id=2), result(task_id=3)], indent=1)
    records = read(content[: content.index('"task_id": 3') + 5], "r.json")
    assert [type(record) for record in records] == [Record, Record, Rejected]
    # Where the third object's bracket stands.
    assert records[2].line == content[: content.index('"task_id": 3')].count("\n")


def test_a_packed_file_that_breaks_off_is_one_rejection_more() -> None:
    lines = [json.dumps({"request": hashlib.sha256(b"%d" % number).hexdigest()}) for number in range(20_000)]
    records = read(gzip.compress("\n".join(lines).encode())[:-5000], "cases.jsonl.gz")
    *kept, last = records
    assert all(isinstance(record, Record) for record in kept)
    assert [record.line for record in records] == list(range(1, len(records) + 1))
    assert "breaks off" in last.reason
    assert len(kept) > 15_000


def test_every_file_of_a_folder_and_an_archive_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("chats.jsonl", '{"messages": [{"role": "user", "content": "hi"}]}\n')
        archive.writestr("runs/tau.json", json.dumps([result()]))
    (tmp_path / "b.csv").write_text("question,answer\nhi,hello\n")
    (tmp_path / "c.jsonl").write_text("nothing\n")
    (tmp_path / "README.md").write_text("# x\n")
    found = [(opened.name, opened.format, len(list(opened.records))) for opened in open_records(tmp_path)]
    folder = tmp_path.name
    assert found == [
        (f"{folder}/a.zip/chats.jsonl", "openai-chat", 1),
        (f"{folder}/a.zip/runs/tau.json", "tau-bench", 1),
        (f"{folder}/b.csv", "csv", 1),
        (f"{folder}/c.jsonl", "", 1),
    ]


def test_records_can_be_read_after_all_files_were_opened(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text('{"request": "hi"}\n' * 3)
    opened = list(open_records(tmp_path))
    assert [len(list(one.records)) for one in opened] == [3, 3]


def test_ids_do_not_depend_on_how_a_file_is_packed(tmp_path: Path) -> None:
    content = json.dumps([result()]).encode()
    plain, packed = read(content, "run.json")[0], read(gzip.compress(content), "run.json.gz")[0]
    assert plain.source_id == packed.source_id == "run/task-1/trial-0"


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    for name, head, between in (("a.jsonl", "", "\n"), ("a.json", "[", ",")):
        with (tmp_path / name).open("w") as file:
            file.write(head)
            for number in range(10_000):
                file.write(f'{between if number else ""}{{"request": "{number} {"x" * 1000}"}}')
        tracemalloc.start()
        assert sum(1 for _record in read_file(tmp_path / name)) == 10_000 + (head == "[")
        # The file is ten megabytes.
        assert tracemalloc.get_traced_memory()[1] < 7_000_000
        tracemalloc.stop()


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match="no such file"):
        list(read_file(tmp_path / "none.jsonl"))


def test_a_mapping_goes_with_no_other_format() -> None:
    with pytest.raises(BrokenInput, match="mapping goes with"):
        check_format("tau-bench", {"request": "x"})


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
SIGNALS = {
    "errors": ["e", {"type": "t", "message": "m"}],
    "checks": [{"name": "n", "passed": False, "reason": "r"}],
    "feedback": [{"name": "n", "value": 1, "comment": "c"}, "down"],
    "happened_at": "2024-06-01",
    "session": "s",
    "blamed_turn": 1,
    "findings": [{}],
    "score": 1,
}
REQUEST = {"danmaku": [{"user": "u", "text": "hi"}], "history": [{"role": "user", "content": "x"}]}


@pytest.mark.parametrize(
    "whole",
    [
        result(traj=MESSAGES, info={"source": "s", "reward_info": {"info": {"outputs": {"a": 0}}}}),
        {"id": "a", "messages": MESSAGES, "context": {"room": {}}, "scores": {"accuracy": 0}, "tags": ["t"]},
        {"request": REQUEST, "reply": "r", "symptom": "s", "category": "c", "failed": True},
        {"request": "hi", "trajectory": TRAJECTORY},
        {"messages": MESSAGES, "tools": [{"type": "function"}], "metadata": {"a": 1}},
        {
            "request": {"messages": MESSAGES, "model": "m"},
            "response": {"choices": [{"message": MESSAGES[1]}]},
        },
        {
            "custom_id": "a",
            "response": {"status_code": 400, "body": {"error": {"code": "c", "message": "m"}}},
        },
        {
            "conversations": [
                {"from": "human", "value": "x"},
                {"from": "function_call", "value": '{"name": "f"}'},
            ],
            "tools": "[]",
        },
        {
            "question": "a",
            "answer": "b",
            "score": "0.5",
            "tags": "a,b",
            "time": "2024/6/1",
            "对话": "用户：x",
        },
        {"request": "hi", **SIGNALS},
    ],
)
def test_a_record_of_whatever_shape_costs_no_other(whole: dict[str, Any]) -> None:
    content = json.dumps([whole, *variants(whole), whole])
    records = read(content)
    assert {type(record) for record in records} == {Record, Rejected}
    assert (type(records[0]), type(records[-1])) == (Record, Record)


def damage(content: bytes, chance: random.Random) -> bytes:
    """The content with a byte changed, a piece taken out or put in, or cut off."""
    start = chance.randrange(len(content))
    end = start + chance.choice((0, 1, 1, 5, 100))
    piece = chance.choice((b"", b'"', b"{", b"]", b",", b"\n", b"\0", b"\xff", b"\\", b"NaN"))
    return content[:start] if chance.random() < 0.1 else content[:start] + piece + content[end:]


@pytest.mark.parametrize("layout", ["lines", "list", "laid out", "csv", "gz", "zip", "utf-16", "gb18030"])
def test_damage_never_raises_and_lines_stay_in_order(layout: str) -> None:
    values = [{"id": number, "request": "多少钱", "context": {"n": [1]}} for number in range(12)]
    lines = "\n".join(map(json.dumps, values))
    table = "id,问题\n" + "\n".join(f'{number},"多少\n钱"' for number in range(12))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as opened:
        opened.writestr("a.jsonl", lines)
    content = {
        "lines": lines.encode(),
        "list": json.dumps(values).encode(),
        "laid out": json.dumps(values, indent=1).encode(),
        "csv": table.encode(),
        "gz": gzip.compress(lines.encode()),
        "zip": archive.getvalue(),
        "utf-16": lines.encode("utf-16"),
        "gb18030": table.encode("gb18030"),
    }[layout]
    chance = random.Random(layout)  # noqa: S311  not for secrets
    for _time in range(150):
        records = read(damage(content, chance))
        assert [record.line for record in records] == sorted(record.line for record in records)


def test_a_file_name_that_is_not_utf8_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff.json")
    path.write_text(json.dumps([result()]))
    (record,) = read_file(path)
    assert isinstance(record, Record)
    assert record.source_id == "bad\\udcff/task-1/trial-0"


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(BrokenInput, match="no format xml"):
        read("[]", fmt="xml")


ODD_NAMES = {
    "a.txt": '{"id": "1", "request": "hi"}',
    "../b.jsonl": '{"id": "2", "request": "hi"}',
    "noext": '{"id": "3", "request": "hi"}',
    "c.jsonl.1": '{"id": "4", "request": "hi"}',
    "d.txt": "id,request\n5,hi",
}
NOTES = {
    "README.md": 'Lines such as\n{"id": "9", "request": "hi"}\n',
    "notes.txt": "Text\nand more, of it",
    "badge.md": '[![x](y)]\n\n```\n{"id": "9", "request": "hi"}\n```',
    "sheet.xlsx": "",
}


def test_files_of_any_name_are_read_where_they_hold_records(tmp_path: Path) -> None:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, content in (ODD_NAMES | NOTES).items():
            archive.writestr(name, content)
    left_out: list[str] = []
    found = open_stream(data, "x.zip", leave_out=left_out.append)
    ids = [record.source_id for file in found for record in file.records if isinstance(record, Record)]
    assert ids == ["1", "2", "3", "4", "5"]
    assert left_out == [f"x.zip/{name}" for name in NOTES]


def test_a_folder_and_an_archive_of_it_are_read_alike(tmp_path: Path) -> None:
    for name, content in (ODD_NAMES | NOTES).items():
        (tmp_path / name.replace("../", "")).write_text(content)
    left_out: list[str] = []
    found = open_records(tmp_path, leave_out=left_out.append)
    ids = {record.source_id for file in found for record in file.records if isinstance(record, Record)}
    assert ids == {"1", "2", "3", "4", "5"}
    assert {name.rsplit("/")[-1] for name in left_out} == NOTES.keys()


def test_a_long_preamble_takes_no_records_along() -> None:
    found = read('{"event": "start"}\n' * 300 + '{"id": "a", "request": "hi"}\n')
    assert [type(item) for item in found] == [Rejected] * 300 + [Record]


@pytest.mark.parametrize("fmt", ["otlp", "tau2-bench", "promptfoo", "langfuse", "csv"])
def test_a_file_without_anything_of_the_format_that_is_said_is_rejected(fmt: str) -> None:
    found = read('{"id": "a", "request": "hi"}\n', fmt=fmt)
    assert found
    assert all(isinstance(item, Rejected) for item in found)


def test_files_that_were_put_one_behind_the_other_are_read_whole() -> None:
    line = b'\xef\xbb\xbf{"id": "%d", "request": "hi"}\n'
    assert [item.source_id for item in read(line % 1 + line % 2)] == ["1", "2"]
    table = "\ufeffid,request\n%d,hi\n"
    assert [item.source_id for item in read(table % 1 + table % 2, "a.csv")] == ["1", "2"]


def test_a_table_without_rows_holds_no_records() -> None:
    assert read("id,request\n", "a.csv") == []
