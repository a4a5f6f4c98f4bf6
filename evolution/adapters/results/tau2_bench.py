"""Runs of tau2-bench: one JSON object with `info`, `tasks` and `simulations`; a folder's results.json with its parts.

A reward of 1, to within a millionth, is a pass, as in the benchmark's own pass^k. Simulations that ended for reasons
beside the agent are errors, though the benchmark writes a reward of 0 beside most of them.
https://github.com/sierra-research/tau2-bench, src/tau2/data_model
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.shapes import as_dict, as_list, as_text
from evolution.adapters.formats.values import RecordProblem
from evolution.adapters.results.numbers import NoScore, grade, read_cost, read_count, read_ms, read_repeat
from evolution.adapters.results.transcripts import Message, Transcript, read_request, shown_reply
from evolution.adapters.results.wanted import Items, Wanted
from evolution.ports import MeasuredCase, MeasuredResult, MeasuredRun
from harness_repo.runtime.trajectory import CallRecord

FORMAT = "tau2-bench"
# termination_reason -> kind of error; all others are the agent's doing, and its reward counts
ERRORS = {
    "infrastructure_error": "runner_error",
    "unexpected_error": "runner_error",
    "context_window_exceeded": "policy_error",
    "timeout": "timeout",
    "user_error": "user_error",
}
# termination_reason -> status of trajectory/1
STATUSES = {
    "max_steps": "turn_limit",
    "too_many_errors": "agent_error",
    "agent_error": "agent_error",
    "timeout": "time_limit",
    "user_error": "user_error",
    "infrastructure_error": "runner_error",
    "unexpected_error": "runner_error",
    "context_window_exceeded": "model_error",
}
LONGEST_GOAL = 4000


def fits(document: Any) -> bool:
    """Say whether a JSON value is such a run."""
    return isinstance(document, dict) and "simulations" in document and "tasks" in document


def read(document: dict[str, Any], wanted: Wanted) -> MeasuredRun:
    """The run; simulations that can't be read are among its problems."""
    info = as_dict(document.get("info"))
    domain = as_text(as_dict(info.get("environment_info")).get("domain_name"))
    items = Items()
    cases = {case.key: case for case in _read_tasks(as_list(document.get("tasks")), domain, items)}
    results = list(_read_simulations(as_list(document.get("simulations")), domain, wanted, items, cases))
    agent, user = as_dict(info.get("agent_info")), as_dict(info.get("user_info"))
    return MeasuredRun(
        format=FORMAT,
        dataset=wanted.name_dataset(domain),
        model=as_text(agent.get("llm")) or as_text(agent.get("implementation")),
        judge=FORMAT,
        user_model=as_text(user.get("llm")),
        cases=list(cases.values()),
        results=results,
        repeats=max(read_count(info.get("num_trials")), 1),
        problems=items.problems,
        details={
            "agent": as_text(agent.get("implementation")),
            "version": as_text(info.get("git_commit")),
            "made_at": as_text(document.get("timestamp")),
        },
    )


def _read_simulations(
    simulations: list[Any], domain: str, wanted: Wanted, items: Items, cases: dict[str, MeasuredCase]
) -> Iterator[MeasuredResult]:
    """The results; the case of one whose task the file has not is added to `cases`."""
    for number, simulation in enumerate(map(as_dict, simulations)):
        try:
            result = read_simulation(simulation, wanted)
            cases.setdefault(result.key, _case_of_transcript(result.key, simulation, domain))
            yield result
        except RecordProblem as problem:
            items.reject(f"{wanted.name}: simulations.{number}", problem)


def _read_tasks(tasks: list[Any], domain: str, items: Items) -> Iterator[MeasuredCase]:
    for number, task in enumerate(tasks):
        key = as_text(as_dict(task).get("id"))
        if not key:
            items.reject(f"tasks.{number}.id", _("missing"))
            continue
        criteria = as_dict(task.get("evaluation_criteria"))
        yield MeasuredCase(
            key=key,
            request=build_request(as_dict(task.get("user_scenario"))),
            category=domain or "task",
            expected=_read_criteria(criteria),
        )


def build_request(scenario: dict[str, Any]) -> dict[str, Any]:
    """A conversation with the user of a scenario: who they are, and all that they were told to do."""
    told = scenario.get("instructions")
    parts = (
        [told.get(name) for name in ("reason_for_call", "known_info", "unknown_info", "task_instructions")]
        if isinstance(told, dict)
        else [told]
    )
    goal = "\n\n".join(part.strip() for part in parts if isinstance(part, str) and part.strip())
    persona = scenario.get("persona")
    persona = persona if isinstance(persona, str) else json.dumps(persona) if persona else "a customer"
    user = {"persona": persona[:LONGEST_GOAL], "goal": goal[:LONGEST_GOAL] or "-"}
    return {"danmaku": [], "history": [], "user": user}


def _read_criteria(criteria: dict[str, Any]) -> dict[str, Any]:
    said = [*as_list(criteria.get("nl_assertions")), *as_list(criteria.get("communicate_info"))]
    facts = [{"fact": text, "accept": [text]} for text in said if isinstance(text, str)]
    actions = [
        {"name": as_text(action.get("name")), "arguments": action.get("arguments")}
        for action in as_list(criteria.get("actions"))
        if isinstance(action, dict)
    ]
    return {"facts": facts, "actions": actions}


def _case_of_transcript(key: str, simulation: dict[str, Any], domain: str) -> MeasuredCase:
    """The case of a simulation whose task is not in the file: the first thing that its user said."""
    request = read_request(_to_openai(as_list(simulation.get("messages"))))
    return MeasuredCase(key=key, request=request, category=domain or "task")


def read_simulation(simulation: dict[str, Any], wanted: Wanted) -> MeasuredResult:
    """The result of a simulation; raises RecordProblem."""
    key = as_text(simulation.get("task_id"))
    if not key:
        raise RecordProblem(_("`%(name)s` is missing") % {"name": "task_id"})
    reason = as_text(simulation.get("termination_reason"))
    reward = as_dict(simulation.get("reward_info"))
    log = [message for message in as_list(simulation.get("messages")) if isinstance(message, dict)]
    times = _Times.of(log)
    note = as_text(as_dict(simulation.get("info")).get("error"))
    kind = ERRORS.get(reason, "")
    status = STATUSES.get(reason, "ok")
    transcript = Transcript(
        _to_openai(log),
        times.calls,
        times.user_calls,
        times.latency_ms,
        status,
        note or (reason if kind else ""),
    ).to_dict()
    tokens = transcript["usage"]
    return MeasuredResult(
        key=key,
        repeat=read_repeat(simulation, "trial"),
        **_read_scores(reward, kind, note or reason, wanted),
        findings=list(_list_findings(reward)),
        reply=shown_reply(transcript),
        trajectory=transcript,
        **tokens,
        latency_ms=times.latency_ms,
        call_ms=[call.ms for call in times.calls],
        cost=_sum_cost(simulation, tokens["prompt_tokens"]),
    )


def _read_scores(reward: dict[str, Any], kind: str, error: str, wanted: Wanted) -> dict[str, Any]:
    if kind:
        return {"error_kind": kind, "error": error}
    try:
        scores = grade(reward.get("reward"), wanted)
    except NoScore as failure:
        return {"error_kind": "judge_error", "error": f"reward_info.reward: {failure}"}
    parts = as_dict(reward.get("reward_breakdown"))
    said = ", ".join(f"{name} {value}" for name, value in parts.items())
    return {
        **scores,
        "reasons": {"accuracy": f"reward {reward['reward']:g}" + (f" ({said})" if said else "")},
    }


def _list_findings(reward: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The checks that were not met."""
    for check in as_list(reward.get("action_checks")):
        if isinstance(check, dict) and check.get("action_match") is False:
            action = as_dict(check.get("action"))
            called = json.dumps(action.get("arguments"), ensure_ascii=False)
            yield {"kind": "action", "text": f"{as_text(action.get('name'))}({called})"}
    for name, text in (("nl_assertions", "nl_assertion"), ("communicate_checks", "info")):
        for check in as_list(reward.get(name)):
            if isinstance(check, dict) and check.get("met") is False:
                why = as_text(check.get("justification"))
                yield {"kind": name, "text": ": ".join(filter(None, (as_text(check.get(text)), why)))}


def _sum_cost(simulation: dict[str, Any], tokens: int) -> float | None:
    """Of agent and user together; None when one of them is not known."""
    agent = read_cost(simulation.get("agent_cost"), tokens)
    user = read_cost(simulation.get("user_cost"))
    return None if agent is None or user is None else agent + user


def _to_openai(log: list[Any]) -> list[Message]:
    return [_message(message) for message in log if isinstance(message, dict)]


def _message(message: Message) -> Message:
    if message.get("role") == "tool" and message.get("requestor") == "user":
        # A user with tools of their own; the agent has not called it.
        return {"role": "user", "content": f"[{as_text(message.get('content'))}]"}
    calls = [
        {
            "id": as_text(call.get("id")),
            "type": "function",
            "function": {
                "name": as_text(call.get("name")),
                "arguments": json.dumps(call.get("arguments"), ensure_ascii=False),
            },
        }
        for call in as_list(message.get("tool_calls"))
        if isinstance(call, dict)
    ]
    content = message.get("content")
    if message.get("role") == "tool":
        # An answer's id is that of its call.
        failed = "Error: " if message.get("error") and not str(content).lower().startswith("error") else ""
        return {
            "role": "tool",
            "content": f"{failed}{content or ''}",
            "tool_call_id": as_text(message.get("id")),
        }
    return {"role": message.get("role"), "content": content, **({"tool_calls": calls} if calls else {})}


@dataclass(frozen=True)
class _Times:
    """What the log's time stamps say: how long each call of a model took, and each tool."""

    calls: list[CallRecord]
    user_calls: list[CallRecord]
    latency_ms: float

    @classmethod
    def of(cls, log: list[Message]) -> "_Times":
        calls: list[CallRecord] = []
        user_calls: list[CallRecord] = []
        latency, turn, line, before = 0.0, 0, 0, None
        for message in log:
            now = _read_time(message.get("timestamp"))
            took = read_ms((now - before).total_seconds(), 1000) if now and before else 0.0
            before = now or before
            role = message.get("role")
            turn += role == "assistant"
            line += role == "user"
            if role != "user" and message.get("requestor") != "user":
                latency += took
            if isinstance(message.get("usage"), dict):
                into, number = (user_calls, line) if role == "user" else (calls, turn)
                into.append(_call(message, number, took))
        return cls(calls, user_calls, latency)


def _call(message: Message, turn: int, took: float) -> CallRecord:
    usage, raw = message["usage"], as_dict(message.get("raw_data"))
    return CallRecord(
        turn,
        # Newer versions say it themselves.
        read_ms(message.get("generation_time_seconds"), 1000) or took,
        read_count(usage.get("prompt_tokens")),
        read_count(usage.get("completion_tokens")),
        as_text(raw.get("model")),
        finish_reason=as_text(raw.get("finish_reason")),
    )


def _read_time(value: object) -> datetime | None:
    try:
        return datetime.fromisoformat(value).replace(tzinfo=None) if isinstance(value, str) else None
    except ValueError:
        return None
