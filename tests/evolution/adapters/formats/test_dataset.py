import json
import math
from pathlib import Path

import pytest

from evolution.adapters.formats.dataset import read_dataset
from evolution.errors import BrokenInput

CASE = {
    "key": "refund-001",
    "category": "refund",
    "language": "en",
    "split": "dev",
    "request": {"danmaku": [{"user": "Ann", "text": "Can I return it?"}], "history": []},
    "context": {},
    "fixtures": {},
    "expected": {"facts": [], "forbidden": [], "language": "en"},
}


def write(folder: Path, *cases: object) -> Path:
    path = folder / "mine.jsonl"
    path.write_text("\n".join(json.dumps(case) for case in cases), "utf-8")
    return path


def test_a_file_is_read_case_by_case(tmp_path: Path) -> None:
    cases = read_dataset(write(tmp_path, CASE, {**CASE, "key": "refund-002", "split": "guard"}))
    assert [(case.key, case.split) for case in cases] == [("refund-001", "dev"), ("refund-002", "guard")]


def test_every_wrong_line_is_named_with_its_field(tmp_path: Path) -> None:
    path = write(tmp_path, CASE, {**CASE, "split": "train"}, {**CASE, "key": 7}, [1])
    with pytest.raises(BrokenInput) as caught:
        read_dataset(path)
    lines = str(caught.value).splitlines()
    assert lines[0] == "mine.jsonl:2: split: 'train' is none of dev, guard, sealed, calibration"
    assert lines[1].startswith("mine.jsonl:3: key: ")
    assert lines[2].startswith("mine.jsonl:4: ")


def test_a_file_that_is_not_there_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match=r"none\.jsonl can't be read"):
        read_dataset(tmp_path / "none.jsonl")


def test_faults_and_a_user_may_be_given(tmp_path: Path) -> None:
    user = {"persona": "in a hurry", "goal": "learn the price; learn when it ships", "turns": 4}
    faults = [{"kind": "timeout", "tool": "get_stock", "rate": 0.5, "times": 1}]
    plain, full = read_dataset(write(tmp_path, CASE, {**CASE, "request": {"user": user}, "faults": faults}))
    assert (plain.faults, full.faults, full.request) == ([], faults, {"user": user})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"faults": [{"kind": "flood"}]}, "faults[0]: kind is one of"),
        ({"faults": [{"kind": "timeout", "rate": 2}]}, "faults[0]: rate"),
        ({"faults": {"kind": "timeout"}}, "faults: "),
        ({"request": {"user": {"persona": "x"}}}, "request.user: "),
        ({"request": {"user": "Ann"}}, "request.user: "),
        ({"request": {"danmaku": "hi"}}, "request.danmaku: not a list"),
        ({"request": {"danmaku": [1]}}, "request.danmaku.0: not an object"),
        ({"request": {"danmaku": [{"user": "a", "text": 1}]}}, "request.danmaku.0.text: not a text"),
        ({"request": {"danmaku": [], "history": "x"}}, "request.history: not a list"),
        ({"request": {"danmaku": [], "history": ["x"]}}, "request.history.0: not an object"),
        (
            {"request": {"history": [{"role": "user", "content": ["x"]}]}},
            "request.history.0.content: not a text",
        ),
        ({"fixtures": {"t": [{"arguments": [1], "result": 1}]}}, "fixtures.t.0.arguments: not an object"),
        ({"fixtures": {"t": [{"arguments": None}]}}, "fixtures.t.0.arguments: not an object"),
        ({"fixtures": {"t": {}}}, "fixtures.t: "),
        ({"fixtures": {"t": [{"result": math.inf}]}}, "fixtures.t.0.result: inf is no number of JSON"),
        ({"context": {"a": [{"b": math.nan}]}}, "context.a.0.b: nan is no number of JSON"),
        ({"context": {"a": "x\0y"}}, "context.a: a text holds a NUL character"),
        ({"key": "a\nb"}, "key: not a text of printable characters"),
        ({"request": {"user": {"persona": "x", "goal": "y", "turns": 99}}}, "request.user"),
    ],
)
def test_wrong_faults_and_users_are_named(tmp_path: Path, fields: dict[str, object], problem: str) -> None:
    with pytest.raises(BrokenInput) as caught:
        read_dataset(write(tmp_path, {**CASE, **fields}))
    assert str(caught.value).startswith(f"mine.jsonl:1: {problem}")


def test_number_that_only_looks_finite_is_named(tmp_path: Path) -> None:
    line = json.dumps({**CASE, "fixtures": {"t": [{"result": 12345}]}}).replace("12345", "1e999")
    path = tmp_path / "mine.jsonl"
    path.write_text(line)
    with pytest.raises(BrokenInput, match=r"mine.jsonl:1: fixtures.t.0.result: inf is no number of JSON"):
        read_dataset(path)


def test_all_that_is_wrong_with_a_line_is_said_at_once(tmp_path: Path) -> None:
    case = {**CASE, "split": "train", "request": {"danmaku": [1]}, "fixtures": {"t": [{"arguments": 1}]}}
    del case["key"]
    with pytest.raises(BrokenInput) as caught:
        read_dataset(write(tmp_path, case))
    fields = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert fields == ["key", "split", "request.danmaku.0", "fixtures.t.0.arguments"]


def test_context_and_fixtures_may_be_left_out(tmp_path: Path) -> None:
    (case,) = read_dataset(
        write(tmp_path, {k: v for k, v in CASE.items() if k not in ("context", "fixtures")})
    )
    assert (case.context, case.fixtures) == ({}, {})
