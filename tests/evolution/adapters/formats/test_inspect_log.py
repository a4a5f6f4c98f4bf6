import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from evolution.adapters.formats import inspect_log
from evolution.adapters.formats.detect import read_file
from evolution.adapters.formats.items import Item, Where
from evolution.ports import Record, Rejected
from tests.evolution.intake import DATA, needs_data

FOLDER = DATA / "inspect"
WHERE = Where("log.json", "log")


def read(*samples: Any, **fields: Any) -> list[Record | Rejected]:
    log = {"eval": {"task": "t", "run_id": "r", "model": "m"}, "plan": {}, "status": "success", **fields}
    return list(inspect_log.read(iter([Item(1, {**log, "samples": list(samples)})]), WHERE))


def sample(identity: Any = 1, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": "5"}]
    return {"id": identity, "epoch": 1, "input": "2+2", "target": "4", "messages": messages, **fields}


def only(*samples: Any) -> Record:
    (record,) = read(*samples)
    assert isinstance(record, Record)
    return record


@needs_data
@pytest.mark.parametrize(("part", "failed"), [("L8g2GLGD", 48), ("LthYhadZ", 43), ("eF3BogZE", 34)])
def test_the_sample_logs_have_a_record_for_each_sample(part: str, failed: int) -> None:
    (path,) = FOLDER.glob(f"*{part}*.eval")
    records = [record for record in read_file(path) if isinstance(record, Record)]
    correct = count_correct(path)
    assert len({record.source_id for record in records}) == len(records) == 100
    assert sum(record.scores["match"] < 1 for record in records) == failed == 100 - correct


def count_correct(path: Path) -> int:
    """Straight from the archive: match marks what is correct with a C."""
    with zipfile.ZipFile(path) as archive:
        samples = [
            json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")
        ]
    return sum(each["scores"]["match"]["value"] == "C" for each in samples)


@needs_data
def test_a_log_packed_with_zstd_and_one_in_json_are_read() -> None:
    for name, value in (("log_formats.eval", 0.0), ("log_read_sample.json", 1.0)):
        (record,) = read_file(FOLDER / name)
        assert isinstance(record, Record)
        assert record.scores == {"match": value}


@needs_data
def test_logs_without_samples_are_rejected_and_not_raised() -> None:
    for name in ("log_with_nan.txt", "log_invalid.txt"):
        (rejected,) = read_file(FOLDER / name)
        assert isinstance(rejected, Rejected)


def test_all_scores_of_a_sample_count_and_nan_is_none() -> None:
    scores = {
        "match": {"value": "C"},
        "grade": {"value": {"tone": "P", "facts": False}, "explanation": "wrong price"},
        "latency": {"value": 3.5},
        "broken": {"value": float("nan")},
    }
    record = only(sample(scores=scores))
    assert record.scores == {"match": 1.0, "grade/tone": 0.5, "grade/facts": 0.0, "latency": 3.5}
    assert {"kind": "grade", "text": "wrong price"} in record.findings


def test_a_sample_with_an_error_has_no_score() -> None:
    record = only(sample(error={"message": "connection lost"}, scores={"match": {"value": "I"}}))
    assert (record.scores, record.errors) == ({}, ("connection lost",))


def test_a_sample_keeps_its_id_and_one_without_takes_that_of_run_and_epoch() -> None:
    assert only(sample(uuid="u1")).source_id == "u1"
    assert only(sample("a", epoch=2)).source_id == "r/a/2"


def test_thinking_is_kept_apart() -> None:
    content = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": "5"}]
    messages = [{"role": "user", "content": "2+2"}, {"role": "assistant", "content": content}]
    record = only(sample(messages=messages, scores={"match": {"value": "I"}}))
    assert record.reply == "5"
    assert record.trajectory["calls"][0]["reasoning"] == "hm"


def test_a_bad_sample_costs_no_other() -> None:
    first, second, third = read(3, sample(None), sample("fine"))
    assert (first.line, second.line) == (1, 1)
    assert [each.number for each in (first, second) if isinstance(each, Rejected)] == [1, 2]
    assert isinstance(third, Record)


def test_a_broken_member_of_an_archive_costs_no_other() -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("header.json", json.dumps({"eval": {"task": "t"}, "plan": {}}))
        archive.writestr("samples/1_epoch_1.json", '{"id": 1,')
        archive.writestr("samples/2_epoch_1.json", json.dumps(sample("\ud800")))
    rejected, record = inspect_log.read_archive(stream, WHERE)
    assert isinstance(rejected, Rejected)
    assert "samples/1_epoch_1.json" in rejected.reason
    assert isinstance(record, Record)
    assert record.context["sample"] == "\\ud800"


def test_what_is_no_archive_is_rejected() -> None:
    (rejected,) = inspect_log.read_archive(io.BytesIO(b"PK nothing"), WHERE)
    assert isinstance(rejected, Rejected)
