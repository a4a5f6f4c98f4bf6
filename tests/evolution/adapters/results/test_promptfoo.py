import json
from typing import Any

import pytest

from evolution.errors import BrokenInput
from harness_repo.runtime.reading import read_trajectory
from tests.evolution.adapters.results.reading import count_errors, count_passes, only, read_json, read_text


def row(number: int = 0, *, success: bool = True, **fields: Any) -> dict[str, Any]:
    """A row as promptfoo 0.118 writes it: types/index.ts, EvaluateResult."""
    return {
        "promptIdx": 0,
        "testIdx": number,
        "testCase": {"vars": {"q": f"question {number}"}, "assert": [{"type": "contains", "value": "x"}]},
        "vars": {"q": f"question {number}"},
        "provider": {"id": "openai:gpt-4o", "label": ""},
        "prompt": {"raw": f"Answer: question {number}", "label": "Answer: {{q}}"},
        "response": {"output": "x", "tokenUsage": {"total": 14, "prompt": 10, "completion": 4}},
        "success": success,
        "score": 1 if success else 0,
        "failureReason": 0 if success else 1,
        # promptfoo writes an assertion's reason there too.
        "error": None if success else "Expected output to contain x",
        "gradingResult": {
            "pass": success,
            "score": 1 if success else 0,
            "reason": "ok" if success else "Expected output to contain x",
            "componentResults": [
                {"pass": success, "score": 1, "reason": "r", "assertion": {"type": "contains", "value": "x"}}
            ],
        },
        "namedScores": {},
        "latencyMs": 250,
        "cost": 0.001,
        **fields,
    }


def file_of(*rows: dict[str, Any], description: str = "My Tests") -> dict[str, Any]:
    results = {
        "version": 3,
        "timestamp": "2025-01-01T00:00:00Z",
        "prompts": [],
        "results": list(rows),
        "stats": {},
    }
    return {"evalId": "eval-abc", "results": results, "config": {"description": description}}


def test_a_file_is_read_with_tokens_times_and_cost() -> None:
    run = read_json(file_of(row(0), row(1, success=False)))
    assert (run.format, run.dataset, run.model, run.judge) == (
        "promptfoo",
        "my-tests",
        "openai:gpt-4o",
        "promptfoo",
    )
    passed, failed = run.results
    assert [case.key for case in run.cases] == ["test-0", "test-1"]
    assert run.cases[0].request["danmaku"] == [{"user": "user", "text": "question 0"}]
    assert (passed.prompt_tokens, passed.completion_tokens, passed.latency_ms, passed.cost) == (
        10,
        4,
        250,
        0.001,
    )
    assert (failed.accuracy, failed.error_kind, failed.reasons["accuracy"]) == (
        0,
        "",
        "Expected output to contain x",
    )
    assert failed.findings == [{"kind": "contains", "text": "r"}]
    assert [message["role"] for message in passed.trajectory["messages"]] == ["user", "assistant"]
    assert read_trajectory(passed.trajectory).reply == "x"


def test_success_decides_and_not_the_score() -> None:
    lenient = row(success=True, score=0.6)
    strict = row(1, success=False, score=0.6)
    first, second = read_json(file_of(lenient, strict)).results
    assert (first.accuracy, first.effectiveness) == (1, 1)
    assert (second.accuracy, second.effectiveness) == (0, 0.6)


def test_an_effectiveness_that_the_source_names_is_kept() -> None:
    result = only(read_json(file_of(row(namedScores={"effectiveness": 0.5}))))
    assert (result.accuracy, result.effectiveness) == (1, 0.5)


@pytest.mark.parametrize(
    ("fields", "kind"),
    [
        ({"failureReason": 2, "error": "API error: 500"}, "policy_error"),
        ({"failureReason": 2, "error": "Evaluation timed out after 100ms"}, "timeout"),
        ({"response": {"error": "API error: 429"}, "failureReason": 0}, "policy_error"),
        # Before there was a failureReason.
        ({"failureReason": None, "error": "API error", "gradingResult": None}, "policy_error"),
        # promptfoo counts these as failed tests.
        (
            {"gradingResult": {"pass": False, "reason": "503", "metadata": {"graderError": True}}},
            "judge_error",
        ),
    ],
)
def test_outages_are_errors_and_no_scores(fields: dict[str, Any], kind: str) -> None:
    result = only(read_json(file_of(row(success=False, **fields))))
    assert (result.error_kind, result.accuracy, result.effectiveness) == (kind, None, None)
    assert result.error


def test_old_rows_with_a_failed_assertion_are_failures() -> None:
    old = row(success=False)
    del old["failureReason"], old["testIdx"], old["promptIdx"]
    assert only(read_json({"results": {"version": 2, "results": [old], "table": {}}})).accuracy == 0


def test_several_prompts_or_providers_have_to_be_chosen_from() -> None:
    other = row(provider={"id": "openai:gpt-4o-mini"}, success=False)
    both = file_of(row(), other)
    with pytest.raises(BrokenInput, match="--variant"):
        read_json(both)
    run = read_json(both, variant="openai:gpt-4o-mini | 0: Answer: {{q}}")
    assert (run.model, only(run).accuracy) == ("openai:gpt-4o-mini", 0)
    assert len(run.cases) == 1


@pytest.mark.parametrize("wanted", ["b", "b | 1", "b | 1: {{q}}!", "1", "1: {{q}}!", "{{q}}!"])
def test_a_run_may_be_named_by_whatever_only_it_has(wanted: str) -> None:
    rows = [
        row(provider={"id": provider}, promptIdx=number, prompt={"raw": "x", "label": label})
        for provider, number, label in (("a", 0, "{{q}}"), ("b", 1, "{{q}}!"))
    ]
    assert read_json(file_of(*rows), variant=wanted).model == "b"


def test_a_name_that_several_runs_have_is_none() -> None:
    rows = [row(provider={"id": "a"}, promptIdx=number) for number in (0, 1)]
    with pytest.raises(
        BrokenInput, match=r"--variant one of:\n  a \| 0: Answer: {{q}}\n  a \| 1: Answer: {{q}}$"
    ):
        read_json(file_of(*rows), variant="a")


def test_a_score_that_is_no_number_is_no_score() -> None:
    result = only(read_json(file_of(row(success=False, score=float("nan")))))
    assert (result.error_kind, result.effectiveness) == ("judge_output", None)


def test_runs_of_one_test_are_its_repeats() -> None:
    again = {**row(0), "testIdx": 1}
    run = read_json(file_of(row(0), again))
    assert (run.repeats, [(result.key, result.repeat) for result in run.results]) == (
        2,
        [("test-0", 0), ("test-0", 1)],
    )


def test_cases_are_named_by_id_then_description_then_number() -> None:
    def test_of(number: int, **case: Any) -> dict[str, Any]:
        return row(number, testCase={"vars": {}, **case}, vars={"q": str(number)})

    run = read_json(
        file_of(
            test_of(0, metadata={"id": "refund-1"}),
            test_of(1, description="asks twice"),
            test_of(2, description="same"),
            test_of(3, description="same"),
        )
    )
    assert [case.key for case in run.cases] == ["refund-1", "asks twice", "test-2", "test-3"]


def test_messages_of_a_chat_prompt_are_kept_apart() -> None:
    raw = json.dumps([{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi"}])
    result = only(read_json(file_of(row(prompt={"raw": raw, "label": "chat"}))))
    assert [message["role"] for message in result.trajectory["messages"]] == ["system", "user", "assistant"]


def test_rows_alone_are_read_too() -> None:
    lines = "\n".join(json.dumps(row(number)) for number in range(3))
    assert count_passes(read_text(lines)) == 3
    assert count_errors(read_json([row(0), row(1)])) == {}
