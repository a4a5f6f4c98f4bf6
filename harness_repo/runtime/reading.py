"""Reads a trajectory that another program wrote, or that was stored: whatever is left out gets a sound value."""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from harness_repo.format.json_schema import SchemaUnusable, find_violation, load_schema
from harness_repo.runtime.chat import Message, Usage
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.trajectory import (
    CallRecord,
    Exchange,
    HookRecord,
    ToolCallRecord,
    Trajectory,
    sum_latency,
    sum_usage,
)

# Of each list in what another program wrote; checking takes about 0.1 ms for each entry.
MOST_ENTRIES = 5000

_Record = TypeVar("_Record", Usage, ToolCallRecord, HookRecord, CallRecord, Exchange)


def read_trajectory(value: object, *, most_entries: int | None = MOST_ENTRIES) -> Trajectory:
    """The trajectory that a JSON value stands for; {"reply": "..."} alone is one.

    No list may have more than `most_entries`; None takes any, for what our runtime wrote. Tool calls that are not
    listed are read from the messages, tokens and times that are not given are summed.
    Raises ValueError with the path of what is wrong.
    """
    if most_entries is not None:
        _check_length(value, most_entries)
    record = _checked(value)
    messages: list[Message] = record.get("messages", [])
    calls = _rows(CallRecord, record.get("calls"))
    if "tool_calls" in record:
        tool_calls = _rows(ToolCallRecord, record["tool_calls"])
    else:
        tool_calls = list(find_tool_calls(messages))
    return Trajectory(
        status=record.get("status", "ok"),
        reply=record.get("reply"),
        messages=messages,
        skills_loaded=record.get("skills_loaded", []),
        tool_calls=tool_calls,
        hooks=_rows(HookRecord, record.get("hooks")),
        calls=calls,
        usage=_row(Usage, record["usage"]) if "usage" in record else sum_usage(calls),
        latency_ms=record.get("latency_ms", sum_latency(calls, tool_calls)),
        finish_reason=record.get("finish_reason", calls[-1].finish_reason if calls else ""),
        error=record.get("error"),
        error_kind=record.get("error_kind"),
        retries=record.get("retries", 0),
        conversation=_rows(Exchange, record.get("conversation")),
        user_calls=_rows(CallRecord, record.get("user_calls")),
        runner=record.get("runner", {}),
    )


def find_tool_calls(messages: list[Message]) -> Iterator[ToolCallRecord]:
    """The tool calls that stand in messages, each with the answer that follows it; times are not known."""
    turn = 0
    for position, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        turn += 1
        answers = _answers_after(messages, position)
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = _parse(function.get("arguments") or {})
            key = call.get("id", "")
            yield ToolCallRecord(turn, key, function["name"], arguments, answers.get(key), None, 0.0)


def _answers_after(messages: list[Message], position: int) -> dict[str, object]:
    """Tool call id -> result, from the tool messages up to the assistant's next message."""
    answers: dict[str, object] = {}
    for message in messages[position + 1 :]:
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            answers[message.get("tool_call_id", "")] = _parse(message.get("content"))
    return answers


def _checked(value: object) -> dict[str, Any]:
    try:
        wrong = find_violation(load_schema("trajectory"), value)
    except SchemaUnusable as failure:
        raise ValueError(f"$: {failure}") from failure
    if wrong or not isinstance(value, dict):
        raise ValueError(wrong or "$: not an object")
    if value.get("status", "ok") == "ok" and value.get("reply") is None:
        raise ValueError("$.reply: missing, and the status says that the run is ok")
    return value


def _check_length(value: object, most: int) -> None:
    lists = (
        {name: inner for name, inner in value.items() if isinstance(inner, list)}
        if isinstance(value, dict)
        else {}
    )
    called = [m.get("tool_calls") for m in lists.get("messages", ()) if isinstance(m, dict)]
    lists["messages[*].tool_calls"] = [None] * sum(len(calls) for calls in called if isinstance(calls, list))
    for name, entries in lists.items():
        if len(entries) > most:
            raise ValueError(f"$.{name}: {len(entries)} entries, at most {most}")


# What stands for a field that is not given.
_DEFAULTS: dict[type, dict[str, Any]] = {
    Usage: {},
    ToolCallRecord: {"turn": 0, "id": "", "arguments": {}, "result": None, "error": None, "ms": 0.0},
    HookRecord: {"turn": 0, "event": "", "message": ""},
    CallRecord: {"turn": 0, "ms": 0.0, "prompt_tokens": 0, "completion_tokens": 0, "model": ""},
    Exchange: {"reply": None, "status": "ok"},
}


def _rows(kind: type[_Record], rows: list[Mapping[str, Any]] | None) -> list[_Record]:
    return [_row(kind, row) for row in rows or ()]


def _row(kind: type[_Record], row: Mapping[str, Any]) -> _Record:
    names = {field.name for field in fields(kind)}
    given = {name: value for name, value in row.items() if name in names}
    return kind(**{**_DEFAULTS[kind], **given})


def _parse(content: object) -> object:
    """The JSON value of a text, or the content as it is."""
    if not isinstance(content, str):
        return content
    try:
        return read_json(content)
    except ValueError:
        return content
