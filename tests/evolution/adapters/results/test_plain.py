import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

from evolution.adapters.results.plain import load_schema
from harness_repo.format.json_schema import check_json_schema
from tests.evolution.adapters.results.reading import only, read_json, read_text


def lines(*records: Any) -> str:
    return "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)


def test_the_schema_is_a_schema() -> None:
    check_json_schema(load_schema())


def test_a_run_is_read_with_all_its_fields() -> None:
    run = read_text(
        lines(
            {"run": {"dataset": "Refunds 2", "model": "a 7", "judge": "j", "repeats": 2, "version": "v7"}},
            {
                "case": "r1",
                "accuracy": 1,
                "effectiveness": 0.5,
                "request": "Can I?",
                "reply": "Yes.",
                "reasons": "as told",
                "latency_ms": 900,
                "call_ms": [400, 500],
                "prompt_tokens": 12,
                "completion_tokens": 3,
                "cached_tokens": 5,
                "cost": 0.004,
                "category": "refund",
                "language": "en",
            },
        )
    )
    result, case = only(run), run.cases[0]
    assert (run.dataset, run.model, run.judge, run.repeats, run.problems) == ("refunds-2", "a 7", "j", 2, [])
    assert (case.key, case.category, case.request["danmaku"][0]["text"]) == ("r1", "refund", "Can I?")
    assert (result.accuracy, result.effectiveness, result.reply) == (1, 0.5, "Yes.")
    assert (result.prompt_tokens, result.completion_tokens, result.cached_tokens, result.cost) == (
        12,
        3,
        5,
        0.004,
    )
    assert (result.latency_ms, result.call_ms, result.reasons) == (900, [400, 500], {"accuracy": "as told"})


def test_lines_of_a_case_are_its_repeats() -> None:
    run = read_text(lines(*({"case": 7, "accuracy": number % 2} for number in range(3))))
    assert [(result.key, result.repeat) for result in run.results] == [("7", 0), ("7", 1), ("7", 2)]


def test_a_score_is_read_on_its_scale() -> None:
    records = lines({"case": "a", "score": 8}, {"case": "b", "accuracy": 1}, {"case": "c", "score": 11})
    first, second, third = read_text(records, full_marks=10, threshold=0.8).results
    assert (first.accuracy, second.accuracy) == (1, 1)
    assert (third.accuracy, third.error_kind) == (None, "judge_output")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_an_effectiveness_that_is_no_number_is_no_score(number: str) -> None:
    run = read_text(f'{{"case": "a", "accuracy": 1, "effectiveness": {number}}}')
    assert all(result.error_kind == "judge_output" and result.effectiveness is None for result in run.results)
    assert len(run.results) + len(run.problems) == 1


def test_an_error_is_no_score_whatever_stands_beside_it() -> None:
    run = read_text(
        lines(
            {"case": "a", "accuracy": 1, "error": "down"},
            {"case": "b", "accuracy": None, "error": "late", "error_kind": "timeout"},
        )
    )
    assert [(r.error_kind, r.error, r.accuracy) for r in run.results] == [
        ("runner_error", "down", None),
        ("timeout", "late", None),
    ]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ('{"case": "x", "accuracy": ', "x.jsonl:2: broken JSON at column 27"),
        ({"case": "x"}, "x.jsonl:2: $"),
        ({"case": "x", "accuracy": 0.5}, "x.jsonl:2: $.accuracy"),
        ({"case": "x", "accuracy": 1, "repeat": -1}, "x.jsonl:2: $.repeat"),
        ({"case": "x", "accuracy": 1, "trajectory": {"status": "fine"}}, "x.jsonl:2: $.trajectory.status"),
        ({"case": "x", "accuracy": 1, "messages": [{"content": "?"}]}, "x.jsonl:2: message 1"),
        ("7", "x.jsonl:2: a record must be an object"),
        ('{"case": "x", "score": 1, "context": ' + "[" * 200 + "]" * 200 + "}", "x.jsonl:2: broken JSON"),
    ],
)
def test_a_broken_line_costs_its_own_result_alone(record: Any, said: str) -> None:
    text = lines({"case": "a", "accuracy": 1}, record, {"case": "b", "accuracy": 0})
    run = read_text(text, name="x.jsonl")
    assert [result.key for result in run.results] == ["a", "b"]
    (problem,) = run.problems
    assert problem.startswith(said)


def test_messages_become_a_trajectory() -> None:
    messages = [
        {"role": "user", "content": "How much?"},
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "price", "arguments": '{"id": 3}'}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": '{"price": 89}'},
        {"role": "assistant", "content": "89."},
    ]
    run = read_text(lines({"case": "a", "accuracy": 1, "messages": messages}))
    result = only(run)
    assert (result.reply, run.cases[0].request["danmaku"][0]["text"]) == ("89.", "How much?")
    (call,) = result.trajectory["tool_calls"]
    assert (call["name"], call["arguments"], call["result"]) == ("price", {"id": 3}, {"price": 89})


def test_a_list_in_one_value_is_read_too() -> None:
    assert len(read_json([{"case": "a", "accuracy": 1}, {"case": "b", "accuracy": 0}]).results) == 2


def test_a_byte_order_mark_and_windows_lines_are_no_obstacle() -> None:
    assert (
        len(read_text("\ufeff" + '{"case": "a", "accuracy": 1}\r\n{"case": "b", "accuracy": 0}\r\n').results)
        == 2
    )


def test_the_examples_of_the_documentation_can_be_read() -> None:
    readme = (Path(settings.BASE_DIR) / "README.md").read_text("utf-8")
    example = readme.split('```json\n{"run"')[1].split("```")[0]
    run = read_text('{"run"' + example)
    assert (run.dataset, run.problems, len(run.results)) == ("refunds", [], 3)
