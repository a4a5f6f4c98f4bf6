"""What an identical model call is recognised by, and how its answer is written down."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from evolution.ports import RESERVED_PARAMETERS
from harness_repo.runtime.chat import ChatReply, ChatRequest, ToolCall, Usage
from harness_repo.runtime.storable import make_storable

_HALVES = re.compile("[\ud800-\udfff]")

_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


def write_request(request: ChatRequest) -> bytes:
    """All of a request that can make a difference to its answer, but for the model's name."""
    asked = [request.messages, request.tools, request.response_schema, request.repeat]
    # Of parameters themselves the order says nothing; in what they hold it is part of what the model reads.
    sent = [
        (str(name), value) for name, value in request.parameters.items() if name not in RESERVED_PARAMETERS
    ]
    return f"{_write(asked)}{_write(dict(sorted(sent, key=_name)))}".encode("utf-8", "surrogatepass")


def _name(parameter: tuple[str, Any]) -> str:
    return parameter[0]


def start_key(*parts: str) -> "hashlib._Hash":
    """What keys of the same origin have in common: role, program behind the model, whose evaluation."""
    return hashlib.sha256(_write(parts).encode())


def finish_key(start: "hashlib._Hash", model: str, request: bytes) -> UUID:
    """The key of a request to a model: 128 bits of a SHA-256."""
    digest = start.copy()
    digest.update(f"{json.dumps(model)}\n".encode())
    digest.update(request)
    return UUID(bytes=digest.digest()[:16])


def write_reply(reply: ChatReply) -> tuple[ChatReply, str]:
    """A reply as it can be kept, and its JSON.

    They are the same to the letter, so that what follows from a kept reply asks what followed from the first one.
    """
    if not math.isfinite(reply.latency_ms):
        reply = replace(reply, latency_ms=0.0)
    text = _write(_fields(reply))
    # JSON writes NUL as an escape, and a half of a surrogate pair as itself.
    if "\\u0000" in text or _HALVES.search(text):
        reply = read_reply(make_storable(_fields(reply)))
        text = _write(_fields(reply))
    return reply, text


def read_reply(kept: Mapping[str, Any]) -> ChatReply:
    """The reply that was kept; KeyError or TypeError when it is none."""
    return ChatReply(
        content=kept["content"],
        tool_calls=[ToolCall(*call) for call in kept["tool_calls"]],
        finish_reason=kept["finish_reason"],
        usage=Usage(*kept["usage"]),
        model=kept["model"],
        latency_ms=kept["latency_ms"],
        reasoning=kept["reasoning"],
        fingerprint=kept["fingerprint"],
    )


def _fields(reply: ChatReply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "content": reply.content,
        "tool_calls": [[call.id, call.name, call.arguments] for call in reply.tool_calls],
        "finish_reason": reply.finish_reason,
        "usage": [usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens],
        "model": reply.model,
        "latency_ms": reply.latency_ms,
        "reasoning": reply.reasoning,
        "fingerprint": reply.fingerprint,
    }
