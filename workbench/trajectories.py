"""Reads a stored trajectory into what a page shows, turn by turn. Tolerant: imported ones can be anything."""

import json
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class CallView:
    """A tool call with its arguments and result as text."""

    name: str
    summary: str
    arguments: str
    result: str
    error: str
    ms: float | None


@dataclass(frozen=True)
class TurnView:
    """One message: `role` as in chat completions; calls and hook firings belong to an assistant's."""

    role: str
    text: str
    turn: int
    calls: list[CallView] = field(default_factory=list)
    hooks: list[dict[str, Any]] = field(default_factory=list)

    @property
    def passed(self) -> list[dict[str, Any]]:
        """The hooks that had nothing to say."""
        return [hook for hook in self.hooks if hook.get("outcome") == "pass"]

    @property
    def fired(self) -> list[dict[str, Any]]:
        """The hooks that did something."""
        return [hook for hook in self.hooks if hook.get("outcome") != "pass"]


def read_turns(trajectory: Any) -> list[TurnView]:
    """The messages of a trajectory; tool messages are shown as the results of the calls they answer."""
    if not isinstance(trajectory, dict):
        return []
    messages = _rows(trajectory, "messages")
    records = {str(call.get("id")): call for call in _rows(trajectory, "tool_calls")}
    answers = {str(m.get("tool_call_id")): m for m in messages if m.get("role") == "tool"}
    hooks = _rows(trajectory, "hooks")
    turns: list[TurnView] = []
    number = 0
    for message in messages:
        role = str(message.get("role", ""))
        if role == "tool" and str(message.get("tool_call_id")) in _called_ids(messages):
            continue
        number += role == "assistant"
        calls = [_view_call(call, records, answers) for call in _rows(message, "tool_calls")]
        fired = [hook for hook in hooks if role == "assistant" and hook.get("turn") == number]
        turns.append(TurnView(role, text_of(message.get("content")), number, calls, fired))
    return turns


def _called_ids(messages: list[dict[str, Any]]) -> set[str]:
    return {str(call.get("id")) for message in messages for call in _rows(message, "tool_calls")}


def _rows(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = record.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _view_call(
    call: dict[str, Any], records: dict[str, dict[str, Any]], answers: dict[str, dict[str, Any]]
) -> CallView:
    nested = call.get("function")
    function = nested if isinstance(nested, dict) else call
    key = str(call.get("id"))
    record, answer = records.get(key, {}), answers.get(key, {})
    arguments = record.get("arguments", _parse(function.get("arguments")))
    result = record["result"] if record.get("result") is not None else _parse(answer.get("content"))
    return CallView(
        name=str(function.get("name", "")),
        summary=_summarise(arguments),
        arguments=pretty(arguments),
        result="" if result is None else pretty(result),
        error=str(record.get("error") or ""),
        ms=record.get("ms"),
    )


def _parse(text: Any) -> Any:
    if not isinstance(text, str):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _summarise(arguments: Any) -> str:
    if isinstance(arguments, dict):
        text = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    else:
        text = str(arguments or "")
    return text if len(text) <= 120 else text[:117] + "..."


def text_of(content: Any) -> str:
    """The text of a message, whose content may be a list of parts."""
    if isinstance(content, list):
        return "\n".join(
            str(part.get("text", "")) if isinstance(part, dict) else str(part) for part in content
        )
    return "" if content is None else str(content)


def pretty(value: Any) -> str:
    """JSON laid out for reading; text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
