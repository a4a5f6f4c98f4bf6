"""What the tests of the readers share: files made on the spot, and the counts of a run."""

import json
from collections import Counter
from typing import Any

from evolution.adapters.results.detect import Source, read_source
from evolution.adapters.results.wanted import Wanted
from evolution.ports import MeasuredResult, MeasuredRun


def read_json(value: Any, name: str = "results.json", **wanted: Any) -> MeasuredRun:
    return read_source(Source(name, json.dumps(value).encode()), Wanted(**wanted))


def read_text(text: str, name: str = "results.jsonl", **wanted: Any) -> MeasuredRun:
    return read_source(Source(name, text.encode()), Wanted(**wanted))


def only(run: MeasuredRun) -> MeasuredResult:
    (result,) = run.results
    return result


def count_passes(run: MeasuredRun) -> int:
    return sum(result.accuracy == 1 for result in run.results)


def count_errors(run: MeasuredRun) -> dict[str, int]:
    return dict(Counter(result.error_kind for result in run.results if result.error_kind))
