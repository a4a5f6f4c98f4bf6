import json
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
        ({"request": {"user": {"persona": "x", "goal": "y", "turns": 99}}}, "request.user"),
    ],
)
def test_wrong_faults_and_users_are_named(tmp_path: Path, fields: dict[str, object], problem: str) -> None:
    with pytest.raises(BrokenInput) as caught:
        read_dataset(write(tmp_path, {**CASE, **fields}))
    assert str(caught.value).startswith(f"mine.jsonl:1: {problem}")
