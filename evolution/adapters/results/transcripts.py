"""Messages of another program as a trajectory/1: what was said and called, with times and tokens that are known."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.messages import build_trajectory, check_messages, last_reply, split_request
from evolution.adapters.formats.shapes import as_dict, as_text
from evolution.adapters.formats.values import RecordProblem
from harness_repo.runtime.trajectory import CallRecord, Exchange

Message = dict[str, Any]
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool"})


@dataclass(frozen=True)
class Transcript:
    """A run as its source has it."""

    messages: Sequence[Message]
    calls: Sequence[CallRecord] = ()
    user_calls: Sequence[CallRecord] = ()
    latency_ms: float = 0.0
    # a status of trajectory/1
    status: str = "ok"
    error: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The trajectory; RecordProblem when the messages are none."""
        # What has none is said by its result's error; a source without transcripts is no bad one.
        messages = (
            [_keep(message) for message in check_messages(list(self.messages))] if self.messages else []
        )
        built = build_trajectory(messages, calls=self.calls)
        # An answer without words is one all the same.
        reply = last_reply(messages) or ("" if self.status == "ok" else None)
        return {
            **built,
            "status": self.status,
            "reply": reply,
            "user_calls": [asdict(call) for call in self.user_calls],
            "latency_ms": self.latency_ms,
            "finish_reason": self.calls[-1].finish_reason if self.calls else "",
            "error": self.error or None,
            "conversation": [asdict(turn) for turn in _list_exchanges(messages)],
        }


def read_request(messages: Any) -> dict[str, Any]:
    """The first thing that the user said, as a case's request; without danmaku where nobody said a thing."""
    return split_request(check_messages(messages) if messages else [])


def shown_reply(trajectory: dict[str, Any]) -> str:
    """What the user read: of a conversation all replies, each on a line of its own."""
    turns = trajectory.get("conversation")
    if turns:
        return "\n".join(turn["reply"] for turn in turns if turn["reply"] is not None)
    return trajectory.get("reply") or ""


def _keep(message: Message) -> Message:
    """The fields that belong to a message, each of its own type."""
    if message["role"] not in _ROLES:
        raise RecordProblem(_("unknown role of a message: %(role)s") % {"role": str(message["role"])[:40]})
    kept: Message = {"role": message["role"], "content": message["content"]}
    kept |= {name: message[name] for name in ("reasoning", "is_error") if name in message}
    if message["role"] == "tool":
        kept["tool_call_id"] = as_text(message.get("tool_call_id"))
    calls = [_keep_call(call) for call in message.get("tool_calls") or () if isinstance(call, dict)]
    if calls and message["role"] == "assistant":
        kept["tool_calls"] = calls
    elif calls:
        # A user with tools of their own: told in words, as they are not the agent's.
        named = ", ".join(call["function"]["name"] for call in calls)
        kept["content"] = f"{kept['content'] or ''}\n[{named}]".strip()
    return kept


def _keep_call(call: Message) -> Message:
    function = as_dict(call.get("function"))
    arguments = function.get("arguments")
    if not isinstance(arguments, str | dict | None):
        arguments = json.dumps(arguments)
    named = {"name": as_text(function.get("name")), "arguments": arguments}
    return {"id": as_text(call.get("id")), "type": "function", "function": named}


def _list_exchanges(messages: Sequence[Message]) -> list[Exchange]:
    """Each line of the user with what the agent said to it; none where the user said one thing only."""
    turns: list[tuple[str, list[str]]] = []
    for message in messages:
        if message["role"] == "user":
            turns.append((message["content"] or "", []))
        elif message["role"] == "assistant" and message["content"] and turns:
            turns[-1][1].append(message["content"])
    if len(turns) < 2:
        return []
    return [
        Exchange(user, "\n".join(said) if said else None, "ok" if said else "done") for user, said in turns
    ]
