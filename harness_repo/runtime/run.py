"""What one run has gathered so far, as it grows; it ends up as a Trajectory, however the run ends."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness_repo.format.harness import Harness
from harness_repo.runtime.chat import ChatReply, Message, ToolCall, Usage
from harness_repo.runtime.computing import Allowance
from harness_repo.runtime.evidence import VARIABLES
from harness_repo.runtime.hooks import HookFiring, run_hooks
from harness_repo.runtime.sandbox import ToolOutcome
from harness_repo.runtime.trajectory import (
    CallRecord,
    HookRecord,
    Status,
    ToolCallRecord,
    Trajectory,
    sum_latency,
    to_fields,
)

# What servers take for the name of a function.
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass
class Run:
    """The state of one run; the agent loop is its only writer."""

    harness: Harness
    variables: Mapping[str, Any]
    # What templates, hooks and schemas of this run may compute.
    computing: Allowance = field(default_factory=Allowance)
    turn: int = 0
    retries: int = 0
    status: Status = "ok"
    reply: str | None = None
    messages: list[Message] = field(default_factory=list)
    # The text of the first messages: what the reply may rest on beside tool results.
    prompt: str = ""
    skills_loaded: list[str] = field(default_factory=list)
    tool_calls: list[ToolCallRecord] = field(default_factory=list)
    hooks: list[HookRecord] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = ""
    error: str | None = None
    error_kind: str | None = None
    # The ids of tool calls that are taken.
    _ids: set[str] = field(default_factory=set)

    def start(self, messages: Sequence[Message]) -> None:
        """Take the assembled prompt."""
        self.messages.extend(messages)
        self.prompt = "\n\n".join(str(message["content"]) for message in messages)

    def end(
        self, status: Status, reply: str | None = None, error: str | None = None, kind: str | None = None
    ) -> None:
        """Note how the run ended; the last reply proposed stays when none is given."""
        self.status = status
        self.reply = self.reply if reply is None else reply
        self.error, self.error_kind = error, kind

    def name_calls(self, calls: Sequence[ToolCall]) -> list[ToolCall]:
        """The calls of a turn, each with an id that no other of the run has: some servers send none, or one twice."""
        given = {call.id for call in calls}
        named = []
        for number, call in enumerate(calls, 1):
            key, more = call.id, 0
            while not key or key in self._ids or (key in given and key != call.id):
                more += 1
                key = f"call_{self.turn}_{number}" + (f"_{more}" if more > 1 else "")
            self._ids.add(key)
            named.append(call if key == call.id else replace(call, id=key))
        return named

    def add_reply(self, reply: ChatReply, reasoning: str = "") -> None:
        """Take one answer of the model: its message, tokens and time; what it thought aloud is kept apart."""
        usage = reply.usage
        self.messages.append(_assistant_message(reply))
        self.calls.append(CallRecord.of(reply, self.turn, reasoning))
        self.usage = Usage(
            self.usage.prompt_tokens + usage.prompt_tokens,
            self.usage.completion_tokens + usage.completion_tokens,
            self.usage.cached_tokens + usage.cached_tokens,
        )
        self.finish_reason = reply.finish_reason

    def add_outcome(
        self, call: ToolCall, arguments: object, outcome: ToolOutcome, content: str | None = None
    ) -> None:
        """Take the outcome of a tool call; the model is told `content`, the error, or the result as JSON."""
        told: object = outcome.result if outcome.error is None else {"error": outcome.error}
        text = content if content is not None and outcome.error is None else _json(told)
        self.messages.append({"role": "tool", "tool_call_id": call.id, "content": text})
        self.tool_calls.append(
            ToolCallRecord(
                self.turn,
                call.id,
                call.name,
                arguments,
                outcome.result,
                outcome.error,
                outcome.ms,
                outcome.fault,
            )
        )

    def fire(
        self, event: str, *, pending: Sequence[Mapping[str, Any]] = (), **payload: Any
    ) -> list[HookFiring]:
        """Run the hooks of an event over what is known, and record them.

        `pending` are calls of this turn that have no answer yet, as {"name", "arguments"}.
        """
        if event != "reply" and not any(hook.event == event for hook in self.harness.hooks):
            return []

        def evaluate() -> list[HookFiring]:
            known = {**self._known(), **payload}
            known["tool_calls"] += [
                {"turn": self.turn, "result": None, "error": None, **call} for call in pending
            ]
            return run_hooks(self.harness, event, known)

        firings = self.computing.spend(f"the hooks at {event}", evaluate)
        self.hooks.extend(
            HookRecord(self.turn, event, firing.hook, firing.outcome, firing.record) for firing in firings
        )
        return firings

    @property
    def tokens(self) -> int:
        """What the model has read and written so far."""
        return self.usage.prompt_tokens + self.usage.completion_tokens

    def trajectory(self) -> Trajectory:
        """The finished record."""
        return Trajectory(
            status=self.status,
            reply=self.reply,
            messages=self.messages,
            skills_loaded=self.skills_loaded,
            tool_calls=self.tool_calls,
            hooks=self.hooks,
            calls=self.calls,
            usage=self.usage,
            latency_ms=sum_latency(self.calls, self.tool_calls),
            finish_reason=self.finish_reason,
            error=self.error,
            error_kind=self.error_kind,
            retries=self.retries,
        )

    def _known(self) -> dict[str, Any]:
        return {
            "turn": self.turn,
            "request": self.variables.get("request", {}),
            "danmaku": self.variables.get("danmaku", []),
            "prompt": self.prompt,
            VARIABLES: self.variables,
            "skills_loaded": list(self.skills_loaded),
            "tool_calls": [to_fields(record) for record in self.tool_calls],
        }


def _assistant_message(reply: ChatReply) -> Message:
    message: Message = {"role": "assistant", "content": reply.content}
    if reply.tool_calls:
        message["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": name_of_function(call.name), "arguments": call.arguments},
            }
            for call in reply.tool_calls
        ]
    return message


def name_of_function(name: str) -> str:
    """A tool's name as servers take it back; a model makes up names that they refuse with the whole request."""
    return name if _NAME.fullmatch(name) else re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unnamed"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
