from typing import Any

import pytest

from evolution.adapters.formats import promptfoo
from evolution.adapters.formats.items import Item, Where
from evolution.ports import Check, Record, Rejected

WHERE = Where("results.json", "results")


def row(**fields: Any) -> dict[str, Any]:
    part = {"pass": False, "reason": "no price", "assertion": {"type": "contains"}}
    grading = {"pass": False, "score": 0.5, "componentResults": [part]}
    return {
        "id": "r1", "testIdx": 0, "promptIdx": 0, "success": False, "score": 0.5, "provider": {"id": "openai:gpt"},
        "prompt": {"raw": "price of 3?", "label": "p"}, "vars": {"q": "price of 3?"}, "namedScores": {"tone": 1},
        "response": {"output": "98"}, "gradingResult": grading, **fields,
    }  # fmt: skip


def read(*values: Any) -> list[Record | Rejected]:
    return list(promptfoo.read((Item(line, value) for line, value in enumerate(values, 1)), WHERE))


def only(**fields: Any) -> Record:
    (record,) = read({"evalId": "e", "results": {"version": 3, "results": [row(**fields)]}})
    assert isinstance(record, Record)
    return record


def test_a_row_is_a_record_with_its_assertions() -> None:
    record = only()
    assert (record.source_id, record.failed, record.reply) == ("r1", True, "98")
    assert record.scores == {"score": 0.5, "tone": 1}
    assert record.checks == (Check("contains", passed=False, reason="no price"),)
    assert record.request["danmaku"][0]["text"] == "price of 3?"


def test_what_promptfoo_calls_a_success_has_not_failed() -> None:
    assert only(success=True).failed is False


def test_an_outage_is_an_error_and_no_score() -> None:
    record = only(response={"error": "HTTP 429"}, failureReason=2)
    assert (record.failed, record.errors, record.scores, record.checks) == (None, ("HTTP 429",), {}, ())


def test_rows_on_lines_are_read_and_those_without_ids_are_told_apart() -> None:
    first, second = read(row(id=None), row(id=None))
    assert isinstance(first, Record)
    assert isinstance(second, Record)
    assert (first.source_id, second.source_id) == (
        "results/0/openai:gpt | 0: p",
        "results/0/openai:gpt | 0: p/2",
    )


def test_a_row_that_is_none_costs_no_other() -> None:
    rejected, fine = read({"results": [row(), 3]})[::-1]
    assert isinstance(rejected, Rejected)
    assert rejected.number == 2
    assert isinstance(fine, Record)


@pytest.mark.parametrize("value", [{}, {"results": []}, {"results": [{"a": 1}]}, {"success": True}, []])
def test_other_values_are_no_results(value: object) -> None:
    assert not promptfoo.fits(value)
