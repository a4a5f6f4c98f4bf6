"""The record of one run of a harness: what was sent, called, checked and answered ("trajectory/1")."""

import re
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from harness_repo.runtime.chat import Message, Usage

FORMAT = "trajectory/1"

# Legal in a Python text, and refused by databases and encoders: NUL and halves of surrogate pairs.
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")

Status = Literal[
    "ok",
    "turn_limit",
    "tool_call_limit",
    "time_limit",
    "hook_limit",
    "blocked",
    "model_error",
]


@dataclass(frozen=True)
class ToolCallRecord:
    """One tool call of the model, `load_skill` included; `error` is "code" or "code: detail"."""

    turn: int
    id: str
    name: str
    # The parsed arguments, or the text as the model wrote it when it is not JSON.
    arguments: object
    result: object
    error: str | None
    ms: float


@dataclass(frozen=True)
class HookRecord:
    """One hook that was evaluated; turn 0 is before the first model call."""

    turn: int
    event: str
    hook: str
    outcome: str
    message: str


@dataclass(frozen=True)
class CallRecord:
    """One model call."""

    turn: int
    ms: float
    prompt_tokens: int
    completion_tokens: int
    model: str


@dataclass(frozen=True)
class Trajectory:
    """A finished run. `reply` is None when there was none; a limit keeps the last reply proposed."""

    status: Status
    reply: str | None
    # As sent and received, in order, tool messages and hook messages included.
    messages: list[Message] = field(default_factory=list)
    skills_loaded: list[str] = field(default_factory=list)
    tool_calls: list[ToolCallRecord] = field(default_factory=list)
    hooks: list[HookRecord] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    # Model and tool times summed as reported, so that a cached call keeps its first latency.
    latency_ms: float = 0.0
    finish_reason: str = ""
    error: str | None = None
    # The ChatError's kind for model_error, else None.
    error_kind: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The trajectory as one JSON-ready object; see the module's format name."""
        return {"format": FORMAT, **{key: _storable(value) for key, value in asdict(self).items()}}

    def evidence(self) -> list[dict[str, Any]]:
        """What the agent learnt from tools, for a judge: [{"tool", "arguments", "result"}], skills left out.

        A failed call has "error", the code alone, instead of a result: an answer may not rest on it.
        """
        return [_evidence(call) for call in self.tool_calls if call.name != "load_skill"]


def _evidence(call: ToolCallRecord) -> dict[str, Any]:
    made = {"tool": call.name, "arguments": call.arguments}
    return (
        {**made, "result": call.result} if call.error is None else {**made, "error": call.error.split(":")[0]}
    )


def _storable(value: Any) -> Any:
    """The value with U+FFFD for every character that could not be stored."""
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, dict):
        return {_storable(key): _storable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(inner) for inner in value]
    return value
