"""Puts a completion together that a server streams although nobody asked: some gateways know nothing else."""

import json
from collections.abc import Iterator
from typing import Any


def is_event_stream(content_type: str, body: bytes) -> bool:
    """Whether a body is server-sent events, by its type or, where the type is wrong, by how it begins."""
    return content_type.startswith("text/event-stream") or body.lstrip()[:5] == b"data:"


def join_stream(body: bytes) -> dict[str, Any]:
    """The chat completion that the chunks of a stream make up; ValueError when one is broken or the end is missing.

    The stream has to be of the chat-completions format: a finish reason or `[DONE]` ends it.
    """
    joined: dict[str, Any] = {}
    choice: dict[str, Any] = {"message": {}, "finish_reason": None}
    is_whole = False
    for data in _events(body.decode()):
        if data == "[DONE]":
            is_whole = True
            break
        chunk = json.loads(data)
        joined.update({name: value for name, value in chunk.items() if name != "choices" and value})
        for part in chunk.get("choices") or []:
            _extend(choice["message"], part.get("delta") or {})
            choice["finish_reason"] = part.get("finish_reason") or choice["finish_reason"]
    if not is_whole and choice["finish_reason"] is None:
        raise ValueError("the stream ends before the reply does")
    return {**joined, "choices": [_with_calls(choice)] if choice["message"] else []}


def _events(text: str) -> Iterator[str]:
    """The data of each event; comments and other fields are left out."""
    for event in text.replace("\r\n", "\n").split("\n\n"):
        lines = [line[5:].strip() for line in event.split("\n") if line.startswith("data:")]
        if lines:
            yield "\n".join(lines)


def _extend(message: dict[str, Any], delta: dict[str, Any]) -> None:
    """Add what a chunk says to the message; texts grow, calls do by their index."""
    for name, value in delta.items():
        if name == "tool_calls":
            for call in value or []:
                _extend_call(message.setdefault("calls", {}), call)
        elif isinstance(value, str) and name != "role":
            message[name] = message.get(name, "") + value


def _extend_call(calls: dict[int, dict[str, Any]], part: dict[str, Any]) -> None:
    call = calls.setdefault(
        part.get("index", len(calls)), {"id": "", "function": {"name": "", "arguments": ""}}
    )
    call["id"] = call["id"] or part.get("id") or ""
    function = part.get("function") or {}
    for name in ("name", "arguments"):
        call["function"][name] += function.get(name) or ""


def _with_calls(choice: dict[str, Any]) -> dict[str, Any]:
    message = choice["message"]
    calls = message.pop("calls", {})
    return {**choice, "message": {**message, "tool_calls": [calls[index] for index in sorted(calls)]}}
