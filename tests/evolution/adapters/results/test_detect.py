from pathlib import Path

import pytest

from evolution.adapters.results.detect import Source, open_source, read_source
from evolution.adapters.results.wanted import Wanted
from evolution.errors import BrokenInput


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "x is empty"),
        (b"\xff\xfe", "line 1: not UTF-8"),
        (b"{", "x, line 1, column 2: broken JSON"),
        (b"[1, 2]", "none of the known formats: tau2-bench, tau-bench, inspect, promptfoo, jsonl"),
        (b'{"a": 1}', "none of the known formats"),
        (b"[" * 100_000, "nested more than"),
        (b"[" * 300 + b"]" * 300, "nested more than"),
        (b"PK\x03\x04", "broken archive"),
    ],
)
def test_a_file_that_is_no_results_is_refused_with_the_reason(data: bytes, said: str) -> None:
    with pytest.raises(BrokenInput, match=said):
        read_source(Source("x", data), Wanted())


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match="No such file"):
        open_source(tmp_path / "gone.json")
    with pytest.raises(BrokenInput, match=r"without a results\.json"):
        open_source(tmp_path)


@pytest.mark.parametrize(
    ("name", "asked", "dataset"),
    [("My run.jsonl", "", "my-run"), ("x.jsonl", "Other Set", "other-set"), ("结果.jsonl", "", "imported")],
)
def test_a_dataset_is_named_as_asked_or_after_the_file(name: str, asked: str, dataset: str) -> None:
    run = read_source(Source(name, b'{"case": 1, "accuracy": 1}'), Wanted(dataset=asked))
    assert run.dataset == dataset
