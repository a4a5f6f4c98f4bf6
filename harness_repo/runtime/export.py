"""Writes a trajectory in the formats of other programs: OpenAI chat messages, and ATIF.

Both want every tool call answered, under an id of its own; trajectories of agents that are not ours may lack either,
so the messages are put in order first. A reply that a hook rewrote or blocked stands in no message.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_repo.runtime.chat import Message
from harness_repo.runtime.trajectory import CallRecord, ToolCallRecord, Trajectory

# https://www.harborframework.com/docs/trajectory-format; 1.6 is the newest that readers of 1.5 and 1.7 both take.
ATIF_VERSION = "ATIF-v1.6"

_SOURCES = {"system": "system", "developer": "system", "user": "user", "assistant": "agent", "tool": "system"}


@dataclass(frozen=True)
class _Call:
    """A tool call of a message with what it was answered."""

    id: str
    name: str
    # JSON text, as the model wrote it.
    arguments: str
    answer: str | list[Any]
    record: ToolCallRecord | None


@dataclass(frozen=True)
class _Entry:
    """A message with its calls; a tool message stands alone only when it answers no call."""

    role: str
    content: str | list[Any] | None
    # Of the agent's messages, from 1; 0 before the first.
    turn: int
    calls: list[_Call] = field(default_factory=list)


def to_openai(trajectory: Trajectory, tools: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    """The run as {"messages": [...], "tools": [...]}, valid for chat completions and fine-tuning files.

    `tools` are the definitions that the model was offered. Tool messages that answer no call are left out.
    """
    messages: list[Message] = []
    for entry in _entries(trajectory):
        if entry.role == "tool":
            continue
        message: Message = {"role": entry.role, "content": entry.content}
        if entry.calls:
            message["tool_calls"] = [_openai_call(call) for call in entry.calls]
        elif entry.content is None:
            message["content"] = ""
        messages.append(message)
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": call.answer} for call in entry.calls
        ]
    return {"messages": messages, "tools": list(tools)} if tools else {"messages": messages}


def to_atif(
    trajectory: Trajectory,
    *,
    session_id: str,
    agent_name: str,
    agent_version: str,
    model_name: str = "",
    tools: Sequence[dict[str, Any]] = (),
) -> dict[str, Any]:
    """The run as one object of the Agent Trajectory Interchange Format; `agent_version` is a commit, say.

    What the format has no field for (status, hooks, faults, conversation) stands in the `extra` fields.
    """
    agent: dict[str, Any] = {"name": agent_name, "version": agent_version}
    if model_name:
        agent["model_name"] = model_name
    if tools:
        agent["tool_definitions"] = list(tools)
    steps = [
        {"step_id": number, **step} for number, step in enumerate(_atif_steps(trajectory, model_name), 1)
    ]
    return {
        "schema_version": ATIF_VERSION,
        "session_id": session_id,
        "agent": agent,
        "steps": steps,
        "final_metrics": {
            "total_prompt_tokens": trajectory.usage.prompt_tokens,
            "total_completion_tokens": trajectory.usage.completion_tokens,
            "total_cached_tokens": trajectory.usage.cached_tokens,
            "total_steps": len(steps),
            "extra": {"latency_ms": trajectory.latency_ms, "retries": trajectory.retries},
        },
        "extra": _atif_extra(trajectory),
    }


def _openai_call(call: _Call) -> dict[str, Any]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def _entries(trajectory: Trajectory) -> Iterator[_Entry]:
    """The messages in order, each tool message with the call that it answers."""
    messages = trajectory.messages or _reply_alone(trajectory)
    records: dict[tuple[int, str], ToolCallRecord] = {
        (record.turn, record.id): record for record in trajectory.tool_calls
    }
    seen: set[str] = set()
    turn, position = 0, 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message["role"] != "assistant":
            yield _Entry(message["role"], message.get("content"), turn)
            continue
        turn += 1
        answers: dict[str, str | list[Any]] = {}
        while position < len(messages) and _answers_one_of(message, messages[position]):
            answer = messages[position]
            answers[answer.get("tool_call_id", "")] = answer.get("content") or ""
            position += 1
        calls = [_call(call, turn, answers, records, seen) for call in message.get("tool_calls") or ()]
        yield _Entry("assistant", message.get("content"), turn, calls)


def _reply_alone(trajectory: Trajectory) -> list[Message]:
    return [{"role": "assistant", "content": trajectory.reply or ""}]


def _answers_one_of(message: Message, answer: Message) -> bool:
    ids = {call.get("id", "") for call in message.get("tool_calls") or ()}
    return answer["role"] == "tool" and answer.get("tool_call_id", "") in ids


def _call(
    call: dict[str, Any],
    turn: int,
    answers: dict[str, str | list[Any]],
    records: dict[tuple[int, str], ToolCallRecord],
    seen: set[str],
) -> _Call:
    """One call with its answer, under an id that no call before it has."""
    key = call.get("id", "")
    record = records.get((turn, key))
    answer = answers.get(key)
    if answer is None:
        answer = _answer_of(record)
    unique, number = key or f"call_{turn}", 1
    while unique in seen:
        number += 1
        unique = f"{key or 'call'}_{turn}_{number}"
    seen.add(unique)
    arguments = call["function"].get("arguments")
    text = arguments if isinstance(arguments, str) else _json(arguments or {})
    return _Call(unique, call["function"]["name"], text, answer, record)


def _answer_of(record: ToolCallRecord | None) -> str:
    """What stands for a tool message that is missing."""
    if record is None:
        return _json({"error": "not_answered"})
    return _json(record.result if record.error is None else {"error": record.error})


def _atif_steps(trajectory: Trajectory, model_name: str) -> Iterator[dict[str, Any]]:
    calls = {call.turn: call for call in trajectory.calls}
    asked_again = {
        hook.turn for hook in trajectory.hooks if hook.event == "reply" and hook.outcome == "retry"
    }
    for entry in _entries(trajectory):
        step: dict[str, Any] = {"source": _SOURCES[entry.role], "message": entry.content or ""}
        if entry.role == "assistant":
            step |= _agent_fields(entry, calls.get(entry.turn), model_name)
            hooks = [
                {"hook": hook.hook, "event": hook.event, "outcome": hook.outcome, "message": hook.message}
                for hook in trajectory.hooks
                if hook.turn == entry.turn
            ]
            if hooks:
                step["extra"] = {**step.get("extra", {}), "hooks": hooks}
        elif entry.role == "user" and entry.turn in asked_again:
            # The runtime wrote this one, and no user.
            asked_again.discard(entry.turn)
            step |= {"source": "system", "extra": {"hook_retry": True}}
        yield step


def _agent_fields(entry: _Entry, call: CallRecord | None, model_name: str) -> dict[str, Any]:
    """The fields that a step of the agent alone may have."""
    fields: dict[str, Any] = {}
    if entry.calls:
        fields["tool_calls"] = [
            {"tool_call_id": made.id, "function_name": made.name, "arguments": _arguments(made)}
            for made in entry.calls
        ]
        fields["observation"] = {
            "results": [{"source_call_id": made.id, "content": made.answer} for made in entry.calls]
        }
    extra: dict[str, Any] = {}
    failed = [made for made in entry.calls if made.record and made.record.error]
    if failed:
        extra["tool_errors"] = {made.id: made.record.error for made in failed if made.record}
        extra["faults"] = {made.id: made.record.fault for made in failed if made.record and made.record.fault}
    if call is not None:
        fields |= _metrics(call, model_name)
        extra |= {"finish_reason": call.finish_reason, "fingerprint": call.fingerprint}
    extra = {name: value for name, value in extra.items() if value}
    return {**fields, "extra": extra} if extra else fields


def _metrics(call: CallRecord, model_name: str) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "metrics": {
            "prompt_tokens": call.prompt_tokens,
            "completion_tokens": call.completion_tokens,
            "cached_tokens": call.cached_tokens,
            "extra": {"latency_ms": call.ms},
        }
    }
    if call.model or model_name:
        fields["model_name"] = call.model or model_name
    if call.reasoning:
        fields["reasoning_content"] = call.reasoning
    return fields


def _arguments(call: _Call) -> dict[str, Any]:
    """The arguments as the format wants them: an object; text that is none stands under "raw"."""
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"raw": call.arguments}


def _atif_extra(trajectory: Trajectory) -> dict[str, Any]:
    """How the run ended, for which the format has no fields."""
    record = trajectory.to_dict()
    names = ("status", "reply", "error", "error_kind", "skills_loaded", "conversation")
    return {name: record[name] for name in names if record[name]}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
