"""Writes a trajectory in the formats of other programs: OpenAI chat messages, and ATIF.

Both want every tool call answered, under an id of its own; trajectories of agents that are not ours may lack either,
so the messages are put in order first. A reply that a hook rewrote or blocked stands in no message.
"""

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness_repo.runtime.chat import Message
from harness_repo.runtime.completing import complete_run, ends_with_word, read_opening
from harness_repo.runtime.exchanges import Line, conversation_lines, number_turns
from harness_repo.runtime.run import name_of_function
from harness_repo.runtime.trajectory import CallRecord, ToolCallRecord, Trajectory

# https://www.harborframework.com/docs/trajectory-format; 1.6 is the newest that readers of 1.5 and 1.7 both take.
ATIF_VERSION = "ATIF-v1.6"

_SOURCES = {"system": "system", "developer": "system", "user": "user", "assistant": "agent", "tool": "system"}


@dataclass(frozen=True)
class _Call:
    """A tool call of a message with what it was answered."""

    id: str
    # As servers take it; the record has it as the model wrote it.
    function: str
    # JSON text, as the model wrote it.
    arguments: str
    answer: str
    record: ToolCallRecord | None

    @property
    def name(self) -> str:
        """The tool as the model called it."""
        return self.record.name if self.record else self.function


@dataclass(frozen=True)
class _Entry:
    """A message with its calls; a tool message stands alone only when it answers no call."""

    role: str
    content: str | None
    # Of the agent's messages, from 1; 0 before the first.
    turn: int
    calls: list[_Call] = field(default_factory=list)


def to_openai(
    trajectory: Trajectory, tools: Sequence[dict[str, Any]] = (), request: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The run as {"messages": [...], "tools": [...]}, valid for chat completions and fine-tuning files.

    `tools` are the definitions that the model was offered; `request` is the case's, for agents whose messages lack it.
    A conversation is told once: the instructions, then line by line. Tool messages that answer no call are left out,
    what is no text is written as JSON, and a reply that no message ends with is added at the end.
    """
    messages: list[Message] = []
    for entry in _entries(trajectory, request):
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
    request: Mapping[str, Any] | None = None,
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
        {"step_id": number, **step}
        for number, step in enumerate(_atif_steps(trajectory, model_name, request), 1)
    ] or [{"step_id": 1, "source": "system", "message": trajectory.error or trajectory.status}]
    notes = {"notes": f"{trajectory.status}: {trajectory.error}"} if trajectory.error else {}
    return {
        "schema_version": ATIF_VERSION,
        "session_id": session_id,
        "agent": agent,
        "steps": steps,
        **notes,
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
    function = {"name": call.function, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _entries(trajectory: Trajectory, request: Mapping[str, Any] | None) -> Iterator[_Entry]:
    """The messages in order, each tool message with the call that it answers."""
    run = _completed(trajectory, request)
    lines = conversation_lines(run) if run.conversation else _with_reply(run)
    records: dict[tuple[int, str], deque[ToolCallRecord]] = {}
    for record in run.tool_calls:
        records.setdefault((record.turn, record.id), deque()).append(record)
    names = _Names()
    position = 0
    while position < len(lines):
        turn, message = lines[position]
        position += 1
        if message["role"] != "assistant":
            yield _Entry(message["role"], _text(message.get("content")), turn)
            continue
        first = position
        while position < len(lines) and lines[position][1]["role"] == "tool":
            position += 1
        made = message.get("tool_calls") or []
        answers, others = _match(made, [answer for _, answer in lines[first:position]])
        calls = [
            _call(call, turn, answer, records, names) for call, answer in zip(made, answers, strict=True)
        ]
        content = message.get("content")
        yield _Entry("assistant", None if content is None else _text(content), turn, calls)
        for other in others:
            yield _Entry("tool", _text(other.get("content")), turn)


def _completed(trajectory: Trajectory, request: Mapping[str, Any] | None) -> Trajectory:
    """The run with what its agent left out of the messages; runs of a conversation were completed one by one."""
    if request is None or trajectory.conversation:
        return trajectory
    return complete_run(trajectory, *read_opening(request))


def _with_reply(trajectory: Trajectory) -> list[Line]:
    """The messages, and the reply after them when they break off before the agent's last word.

    A reply that a hook rewrote or blocked stands for the word that the agent did say.
    """
    messages = trajectory.messages
    is_said = ends_with_word(messages)
    if (is_said and _text(messages[-1].get("content")).strip()) or trajectory.reply is None:
        return number_turns(messages)
    kept = messages[:-1] if is_said else messages
    return number_turns([*kept, {"role": "assistant", "content": trajectory.reply}])


def _match(
    calls: Sequence[Message], answers: Sequence[Message]
) -> tuple[list[Message | None], list[Message]]:
    """The answer of each call, and the answers of none: by id, and one without an id by its place."""
    waiting: dict[str, deque[Message]] = {}
    ids = {call.get("id", "") for call in calls}
    others = []
    for answer in answers:
        key = answer.get("tool_call_id", "")
        if key in ids:
            waiting.setdefault(key, deque()).append(answer)
        else:
            others.append(answer)
    found = []
    for call in calls:
        queue = waiting.get(call.get("id", ""))
        found.append(queue.popleft() if queue else None)
    return found, others + [answer for queue in waiting.values() for answer in queue]


class _Names:
    """Ids of calls, each given once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str, turn: int) -> str:
        """The id itself when it is free, else one made of it."""
        unique, number = wanted or f"call_{turn}", 1
        while unique in self._taken:
            number += 1
            unique = f"{wanted or 'call'}_{turn}_{number}"
        self._taken.add(unique)
        return unique


def _call(
    call: dict[str, Any],
    turn: int,
    answer: Message | None,
    records: dict[tuple[int, str], deque[ToolCallRecord]],
    names: _Names,
) -> _Call:
    """One call with its answer, under an id that no call before it has."""
    key = call.get("id", "")
    found = records.get((turn, key))
    record = found.popleft() if found else None
    text = _answer_of(record) if answer is None else _text(answer.get("content"))
    arguments = call["function"].get("arguments")
    written = arguments if isinstance(arguments, str) else _json(arguments or {})
    function = name_of_function(call["function"]["name"])
    return _Call(names.take(key, turn), function, written, text, record)


def _text(content: object) -> str:
    """The text of a message: parts that are texts as they are, anything else as JSON, one after the other."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(map(_part, content))


def _part(part: object) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if isinstance(part, dict) else None
    return text if isinstance(text, str) else _json(part)


def _answer_of(record: ToolCallRecord | None) -> str:
    """What stands for a tool message that is missing."""
    if record is None:
        return _json({"error": "not_answered"})
    return _json(record.result if record.error is None else {"error": record.error})


def _atif_steps(
    trajectory: Trajectory, model_name: str, request: Mapping[str, Any] | None
) -> Iterator[dict[str, Any]]:
    calls = {call.turn: call for call in trajectory.calls}
    asked_again = {
        hook.turn for hook in trajectory.hooks if hook.event == "reply" and hook.outcome == "retry"
    }
    for entry in _entries(trajectory, request):
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
