"""What the benchmark's model answers: a function of the request's text alone, so that any two runs can be compared.

A request with tools is answered with `lookup` calls until there are as many results as its model's name says
("agent-3": three), then with a text. One that asks for JSON is a judge's; scores follow from the case's number.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

_CALLS = re.compile(r"agent-(\d+)")
_NUMBER = re.compile(rb"No\. (\d+)")
_FILLER = "It was placed on 3 March and shipped two days later; the carrier confirmed the delivery. "
_USAGE = {
    "prompt_tokens": 200,
    "completion_tokens": 120,
    "total_tokens": 320,
    "prompt_tokens_details": {"cached_tokens": 64},
}


@dataclass(frozen=True)
class Right:
    """What a case's result has to be."""

    accuracy: float
    effectiveness: float
    reply: str


def right_result(number: int) -> Right:
    """The result of case `number`, whoever asks and how often."""
    return Right(
        float(number % 7 != 0), (0.0, 0.5, 1.0)[number % 3], f"Order No. {number}: {_FILLER * 6}".strip()
    )


def answer(body: bytes) -> tuple[str, bytes]:
    """The kind of a request (policy, tool or judge), and the completion that answers it."""
    request: dict[str, Any] = json.loads(body)
    found = _NUMBER.search(body)
    right = right_result(int(found[1]) if found else 0)
    if request.get("response_format"):
        return "judge", _completion(request, {"content": _verdict(right)})
    step = sum(message["role"] == "tool" for message in request["messages"])
    if request.get("tools") and step < _wanted_calls(request["model"]):
        return "tool", _completion(request, {"content": None, "tool_calls": [_call(step)]})
    return "policy", _completion(request, {"content": right.reply})


def _wanted_calls(model: str) -> int:
    found = _CALLS.search(model)
    return int(found[1]) if found else 0


def _verdict(right: Right) -> str:
    reason = "The reply names the order and what became of it, as the case expects."
    return json.dumps(
        {
            "accuracy": int(right.accuracy),
            "effectiveness": right.effectiveness,
            "reasons": {"accuracy": reason, "effectiveness": reason},
            "findings": [],
        }
    )


def _call(step: int) -> dict[str, Any]:
    function = {"name": "lookup", "arguments": json.dumps({"x": step})}
    return {"id": f"call_{step}", "type": "function", "function": function}


def _completion(request: dict[str, Any], said: dict[str, Any]) -> bytes:
    reason = "tool_calls" if said.get("tool_calls") else "stop"
    choice = {"index": 0, "message": {"role": "assistant", **said}, "finish_reason": reason}
    completion = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": request["model"],
        "choices": [choice],
        "usage": _USAGE,
    }
    return json.dumps(completion).encode()
