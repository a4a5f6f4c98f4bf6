"""Puts into the messages of an agent that is not ours what it told elsewhere: the request, tool calls and the reply."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness_repo.runtime.chat import Message
from harness_repo.runtime.context import normalise_request
from harness_repo.runtime.trajectory import ToolCallRecord, Trajectory

_INSTRUCTIONS = ("system", "developer")


def complete_run(run: Trajectory, said: str, history: Sequence[Message] = ()) -> Trajectory:
    """The run with messages in which the request, its tool calls and its reply stand; what is there stays.

    A run of our runtime has them all, unless it ended before it sent anything.
    """
    if run.messages and not run.runner:
        return run
    messages = list(run.messages)
    if not any(message["role"] == "user" for message in messages):
        start = skip_instructions(messages)
        messages[start:start] = [*history, {"role": "user", "content": said}]
    calls = run.tool_calls
    if calls and not any(message.get("tool_calls") for message in messages):
        messages, calls = _with_calls(messages, calls)
    if run.reply is not None and not ends_with_word(messages):
        messages.append({"role": "assistant", "content": run.reply})
    return replace(run, messages=messages, tool_calls=calls)


def read_opening(request: Mapping[str, Any]) -> tuple[str, list[Message]]:
    """What a case's request says, and the turns before it as messages; "" and none where it can't be read."""
    try:
        normal = normalise_request(request)
    except ValueError:
        return "", []
    said = "\n".join(item.text for item in normal.danmaku)
    return said, [_turn(turn) for turn in normal.history]


def skip_instructions(messages: Sequence[Message]) -> int:
    """How many messages at the beginning are instructions."""
    return sum(1 for _ in itertools.takewhile(lambda message: message["role"] in _INSTRUCTIONS, messages))


def ends_with_word(messages: Sequence[Message]) -> bool:
    """Whether the last message is the agent's, and no tool call."""
    return bool(messages) and messages[-1]["role"] == "assistant" and not messages[-1].get("tool_calls")


def _turn(turn: Mapping[str, Any]) -> Message:
    role = turn.get("role", "user")
    content = turn.get("content", turn.get("text", ""))
    known = role if role in (*_INSTRUCTIONS, "assistant") else "user"
    return {"role": known, "content": content if isinstance(content, str) else ""}


def _with_calls(
    messages: list[Message], calls: Sequence[ToolCallRecord]
) -> tuple[list[Message], list[ToolCallRecord]]:
    """The messages with the calls and their answers before the agent's last word, and the calls with their turns."""
    place = len(messages) - ends_with_word(messages)
    turn = sum(message["role"] == "assistant" for message in messages[:place])
    made: list[Message] = []
    placed: list[ToolCallRecord] = []
    for _, together in itertools.groupby(calls, key=lambda call: call.turn):
        turn += 1
        group = [
            replace(call, turn=turn, id=call.id or f"call_{turn}_{number}")
            for number, call in enumerate(together, 1)
        ]
        made += _as_messages(group)
        placed += group
    return [*messages[:place], *made, *messages[place:]], placed


def _as_messages(calls: Sequence[ToolCallRecord]) -> list[Message]:
    made = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": _text(call.arguments)},
        }
        for call in calls
    ]
    answers = [{"role": "tool", "tool_call_id": call.id, "content": _text(_answer(call))} for call in calls]
    return [{"role": "assistant", "content": None, "tool_calls": made}, *answers]


def _answer(call: ToolCallRecord) -> object:
    return call.result if call.error is None else {"error": call.error}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
