from typing import Any

import pytest

from evolution.adapters.results.detect import Source, open_source, read_source
from evolution.adapters.results.wanted import Wanted
from harness_repo.runtime.reading import read_trajectory
from harness_repo.runtime.simulated_user import read_profile
from tests.evolution.adapters.results.reading import count_errors, count_passes, only, read_json
from tests.evolution.intake import DATA, needs_data


def simulation(task: str = "1", **fields: Any) -> dict[str, Any]:
    messages = [
        {"role": "assistant", "content": "Hi!", "timestamp": "2025-08-01T16:20:44.0", "usage": None},
        {"role": "user", "content": "Cancel it.", "timestamp": "2025-08-01T16:20:45.0", "usage": None},
        {
            "role": "assistant",
            "content": None,
            "timestamp": "2025-08-01T16:20:46.5",
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
            "tool_calls": [{"id": "c1", "name": "cancel", "arguments": {"id": 7}, "requestor": "assistant"}],
        },
        {
            "role": "tool",
            "id": "c1",
            "content": "no such id",
            "error": True,
            "requestor": "assistant",
            "timestamp": "2025-08-01T16:20:46.6",
        },
        {
            "role": "assistant",
            "content": "I can't find it.",
            "timestamp": "2025-08-01T16:20:47.6",
            "usage": {"prompt_tokens": 120, "completion_tokens": 20},
        },
        {"role": "user", "content": "###STOP###", "timestamp": "2025-08-01T16:20:48.6"},
    ]
    return {
        "task_id": task,
        "trial": 0,
        "termination_reason": "user_stop",
        "reward_info": {"reward": 1.0},
        "messages": messages,
        **fields,
    }


def run_of(*simulations: dict[str, Any], tasks: list[Any] | None = None, **info: Any) -> dict[str, Any]:
    known = [{"id": "1", "user_scenario": {"instructions": "Cancel booking 7."}}] if tasks is None else tasks
    about = {
        "num_trials": 1,
        "agent_info": {"implementation": "llm_agent", "llm": "m"},
        "user_info": {"llm": "u"},
        "environment_info": {"domain_name": "airline"},
        **info,
    }
    return {"info": about, "tasks": known, "simulations": list(simulations)}


@needs_data
@pytest.mark.parametrize(
    ("name", "cases", "passes", "dataset", "model"),
    [
        ("airline-base", 20, 10, "airline", "gpt-4.1"),
        ("airline-finetuned", 20, 13, "airline", "ft:gpt-4.1-2025-04-14:sierra:tau2-full-sft:BzrYdMNm"),
        ("retail-base", 40, 34, "retail", "gpt-4.1"),
        ("retail-finetuned", 40, 34, "retail", "ft:gpt-4.1-2025-04-14:sierra:tau2-full-sft:BzrYdMNm"),
    ],
)
def test_real_runs_have_their_known_passes(
    name: str, cases: int, passes: int, dataset: str, model: str
) -> None:
    run = read_source(open_source(DATA / "tau2_bench" / f"{name}.json"), Wanted())
    assert (run.format, run.dataset, run.model, run.user_model) == ("tau2-bench", dataset, model, "gpt-4.1")
    assert (len(run.cases), len(run.results), count_passes(run)) == (cases, cases, passes)
    assert run.problems == []
    for result in run.results:
        read_trajectory(result.trajectory)


@needs_data
def test_both_runs_of_the_same_tasks_have_the_same_cases() -> None:
    runs = [
        read_source(open_source(DATA / "tau2_bench" / f"airline-{name}.json"), Wanted())
        for name in ("base", "finetuned")
    ]
    assert runs[0].cases == runs[1].cases
    for case in runs[0].cases:
        assert read_profile(case.request).goal


def test_tokens_times_and_tools_come_from_the_log() -> None:
    result = only(read_json(run_of(simulation(agent_cost=0.02, user_cost=0.01))))
    assert (result.prompt_tokens, result.completion_tokens) == (220, 30)
    # 1.5 s and 1 s for the model, 0.1 s for the tool; the user's time is not the agent's.
    assert result.call_ms == [1500, 1000]
    assert result.latency_ms == pytest.approx(2600)
    assert result.cost == pytest.approx(0.03)
    (call,) = result.trajectory["tool_calls"]
    assert (call["name"], call["arguments"], call["turn"]) == ("cancel", {"id": 7}, 2)
    assert call["error"] == "error: Error: no such id"
    assert result.reply == "I can't find it."
    assert [turn["user"] for turn in result.trajectory["conversation"]] == ["Cancel it.", "###STOP###"]


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        ("infrastructure_error", "runner_error"),
        ("unexpected_error", "runner_error"),
        ("context_window_exceeded", "policy_error"),
        ("timeout", "timeout"),
        ("user_error", "user_error"),
    ],
)
def test_what_ended_beside_the_agent_is_an_error_and_no_score(reason: str, kind: str) -> None:
    ended = simulation(termination_reason=reason, reward_info={"reward": 0.0}, info={"error": "gone"})
    result = only(read_json(run_of(ended)))
    assert (result.error_kind, result.error, result.accuracy) == (kind, "gone", None)


@pytest.mark.parametrize(
    ("reason", "status"), [("max_steps", "turn_limit"), ("too_many_errors", "agent_error")]
)
def test_an_agent_that_did_not_come_to_an_end_has_its_reward(reason: str, status: str) -> None:
    ended = simulation(termination_reason=reason, reward_info={"reward": 0.0})
    result = only(read_json(run_of(ended)))
    assert (result.accuracy, result.error_kind, result.trajectory["status"]) == (0, "", status)


@pytest.mark.parametrize("reward", [None, {}, {"reward": None}, {"reward": float("nan")}, {"reward": "1"}])
def test_a_reward_that_is_none_is_an_error_of_the_judge(reward: object) -> None:
    result = only(read_json(run_of(simulation(reward_info=reward))))
    assert (result.error_kind, result.accuracy) == ("judge_error", None)


def test_a_broken_simulation_costs_its_own_result_alone() -> None:
    run = read_json(run_of(simulation(), {"trial": 1}, simulation(trial=2, messages=[{"content": "?"}])))
    assert len(run.results) == 1
    assert [problem.split(": ")[1] for problem in run.problems] == ["simulations.1", "simulations.2"]


def test_tools_of_the_user_are_not_the_agents() -> None:
    log = [
        {
            "role": "user",
            "content": None,
            "tool_calls": [{"id": "u1", "name": "reboot", "requestor": "user"}],
        },
        {"role": "tool", "id": "u1", "content": "done", "requestor": "user"},
        {"role": "assistant", "content": "Good."},
    ]
    result = only(read_json(run_of(simulation(messages=log))))
    assert result.trajectory["tool_calls"] == []
    assert [message["content"] for message in result.trajectory["messages"]] == [
        "[reboot]",
        "[done]",
        "Good.",
    ]


def test_a_folder_is_read_with_its_parts(tmp_path: Any) -> None:
    import json  # noqa: PLC0415

    document = run_of()
    (tmp_path / "simulations").mkdir()
    (tmp_path / "results.json").write_text(json.dumps(document))
    for trial in (0, 1):
        part = tmp_path / "simulations" / f"{trial}.json"
        part.write_text(json.dumps(simulation(trial=trial)))
    source = open_source(tmp_path)
    run = read_source(source, Wanted())
    assert [result.repeat for result in run.results] == [0, 1]
    part.write_text("{")
    broken = open_source(tmp_path)
    assert broken.digest != source.digest
    assert len(read_source(broken, Wanted()).problems) == 1


def test_a_task_that_is_not_in_the_file_is_known_by_what_its_user_said() -> None:
    run = read_json(run_of(simulation("9"), tasks=[]))
    assert run.cases[0].request["danmaku"] == [{"user": "user", "text": "Cancel it."}]
    assert count_errors(run) == {}


def test_trials_are_repeats() -> None:
    run = read_json(run_of(simulation(), simulation(trial=1), num_trials=2))
    assert (run.repeats, [result.repeat for result in run.results]) == (2, [0, 1])


@pytest.mark.parametrize("trial", [10**9, None, -1, "x", 0.5, True])
def test_a_trial_that_is_none_costs_its_own_result_alone(trial: Any) -> None:
    run = read_json(run_of(simulation("1"), simulation("2", trial=trial)))
    assert [(result.key, result.repeat) for result in run.results] == [("1", 0)]
    assert "`trial` is no number of a trial" in run.problems[0]


def test_a_source_keeps_its_name() -> None:
    assert Source("a.json", b"{}").digest == Source("b.json", b"{}").digest
