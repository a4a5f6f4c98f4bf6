"""What the model was sent before one of its messages: for making that call again, outside.

Tolerant of any stored trajectory, also of agents that are not ours: what can't be a chat message is left out.
"""

import json
from collections.abc import Mapping
from typing import Any

from harness_repo.runtime.chat import Message
from harness_repo.runtime.completing import read_opening
from harness_repo.runtime.export import to_openai
from harness_repo.runtime.trajectory import Trajectory

_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


def find_asked(trajectory: object, request: Mapping[str, Any], turn: int) -> list[Message]:
    """The messages before the agent's message number `turn`, from 1, fit for chat completions.

    A turn beyond the last means all of them. In a conversation, whose lines are runs of their own, they begin with
    the last instructions. Without messages it is the request, and an empty list where that can't be read.
    """
    record = trajectory if isinstance(trajectory, dict) else {}
    before = _before(_messages(record), turn)
    if record.get("conversation"):
        before = before[_last_start(before) :]
    if not any(message["role"] != "assistant" for message in before):
        before = _opening(request)
    run = Trajectory("turn_limit", None, messages=before)
    sent: list[Message] = to_openai(run)["messages"]
    return sent


def _before(messages: list[Message], turn: int) -> list[Message]:
    """The messages up to the agent's message of that number."""
    number = 0
    for position, message in enumerate(messages):
        number += message["role"] == "assistant"
        if number == turn and message["role"] == "assistant":
            return messages[:position]
    return messages


def _last_start(messages: list[Message]) -> int:
    """Where the last run of a conversation begins."""
    starts = [place for place, message in enumerate(messages) if message["role"] == "system"]
    return starts[-1] if starts else 0


def _opening(request: Mapping[str, Any]) -> list[Message]:
    try:
        said, history = read_opening(request)
    except (TypeError, AttributeError):
        return []
    return [*history, {"role": "user", "content": said}] if said else history


def _messages(record: Mapping[str, Any]) -> list[Message]:
    messages = record.get("messages")
    found = [_message(message) for message in messages] if isinstance(messages, list) else []
    return [message for message in found if message]


def _message(message: object) -> Message:
    """The message with what chat completions know of one; {} for what is none."""
    if not isinstance(message, dict) or str(message.get("role")) not in _ROLES:
        return {}
    content = message.get("content")
    known: Message = {"role": message["role"]}
    known["content"] = content if content is None or isinstance(content, str | list) else _json(content)
    if message["role"] == "tool":
        known["tool_call_id"] = str(message.get("tool_call_id") or "")
    calls = message.get("tool_calls")
    if message["role"] == "assistant" and isinstance(calls, list):
        known["tool_calls"] = [call for call in map(_call, calls) if call]
    return known


def _call(call: object) -> dict[str, Any]:
    nested = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(nested, dict) or not nested.get("name"):
        return {}
    arguments = nested.get("arguments")
    written = arguments if isinstance(arguments, str) else _json(arguments if arguments is not None else {})
    function = {"name": str(nested["name"]), "arguments": written}
    return {"id": str(call.get("id") or ""), "type": "function", "function": function}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
