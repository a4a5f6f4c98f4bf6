"""The record of one run of an agent: what was sent, called, checked and answered ("trajectory/1").

schemas/trajectory.schema.json describes it for other programs; `reading` reads what they give back.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeVar

from harness_repo.runtime.chat import ChatReply, Message, Usage
from harness_repo.runtime.storable import make_storable

FORMAT = "trajectory/1"
# What the schema takes of a number; a sum of numbers that are good may be beyond it.
MOST = 10**12

Status = Literal[
    "ok",
    # Limits of the harness, each with a status of its own; a conversation whose turns run out is "turn_limit" too.
    "turn_limit",
    "tool_call_limit",
    "time_limit",
    "token_limit",
    "hook_limit",
    # A hook ended the run with its fallback reply.
    "blocked",
    # An agent that is not ours said that it failed; that is its answer, and is judged as one.
    "agent_error",
    # The agent's model, the agent itself, or the simulated user's model failed.
    "model_error",
    "runner_error",
    "user_error",
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
    # The kind of the fault that was injected, else None; see `faults`.
    fault: str | None = None


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
    # The model as the server names it.
    model: str
    cached_tokens: int = 0
    finish_reason: str = ""
    # The server's name for the build that answered, "" where it says none.
    fingerprint: str = ""
    # What the model thought aloud; it stands here alone, never in replies or messages.
    reasoning: str = ""
    # What an identical call is recognised by, "" where nobody keeps answers; and whether this one was kept.
    cache_key: str = ""
    is_cached: bool = False

    @classmethod
    def of(cls, reply: ChatReply, turn: int, reasoning: str) -> Self:
        """The record of the call that brought this reply."""
        usage = reply.usage
        return cls(
            turn,
            reply.latency_ms,
            usage.prompt_tokens,
            usage.completion_tokens,
            reply.model,
            usage.cached_tokens,
            reply.finish_reason,
            reply.fingerprint,
            reasoning,
            reply.cache_key,
            reply.is_cached,
        )


@dataclass(frozen=True)
class Exchange:
    """One line of a simulated user and what the agent replied to it."""

    user: str
    # None when the agent had none, when the user left with this line, or when the turns were used up.
    reply: str | None
    # The status of the agent's run; "done" when the user left, "turn_limit" when the turns were used up.
    status: str


@dataclass(frozen=True)
class Trajectory:
    """A finished run. `reply` is None when there was none; a limit keeps the last reply proposed."""

    status: Status
    reply: str | None
    # As sent and received, in order, tool messages and hook messages included; thinking aloud left out.
    messages: list[Message] = field(default_factory=list)
    skills_loaded: list[str] = field(default_factory=list)
    tool_calls: list[ToolCallRecord] = field(default_factory=list)
    hooks: list[HookRecord] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    # The tokens of `calls`.
    usage: Usage = field(default_factory=Usage)
    # Model and tool times as reported, so that a cached call keeps its first latency; of tool calls made
    # together the longest counts.
    latency_ms: float = 0.0
    finish_reason: str = ""
    error: str | None = None
    # The ChatError's kind for model_error and user_error, "case" or "configuration", else None.
    error_kind: str | None = None
    # Replies that hooks refused, and the model was asked for again.
    retries: int = 0
    # Only of a conversation: what was said, and the calls of the simulated user's model.
    conversation: list[Exchange] = field(default_factory=list)
    user_calls: list[CallRecord] = field(default_factory=list)
    # Only of an agent that is not ours: {"kind": "command", "exit_code", "stderr"} or {"kind": "http", "status"}.
    runner: dict[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The trajectory as one JSON-ready object, fit to be stored; see the module's format name.

        Messages, arguments and results in it are those of the trajectory, and no copies.
        """
        stored: dict[str, Any] = make_storable(self.to_fields())
        return stored

    def to_fields(self) -> dict[str, Any]:
        """The same of a trajectory that is known to be fit to be stored."""
        record = {"format": FORMAT, **vars(self), "usage": to_fields(self.usage)}
        for name in _LISTS:
            record[name] = [to_fields(entry) for entry in record[name]]
        return record

    def evidence(self) -> list[dict[str, Any]]:
        """What the agent learnt from tools, for a judge: [{"tool", "arguments", "result"}], skills left out.

        A failed call has "error", the code alone, instead of a result: an answer may not rest on it.
        """
        return [_evidence(call) for call in self.tool_calls if call.name != "load_skill"]

    def replies(self) -> list[str]:
        """All that the viewer was shown, in order: one reply, or those of a conversation."""
        if self.conversation:
            return [turn.reply for turn in self.conversation if turn.reply is not None]
        return [] if self.reply is None else [self.reply]


# The fields that are lists of records.
_LISTS = ("tool_calls", "hooks", "calls", "conversation", "user_calls")


def to_fields(record: object) -> dict[str, Any]:
    """The fields of a record, by name; what is in them is not copied, as dataclasses.asdict does at great length."""
    return dict(vars(record))


def join_runs(runs: Sequence[Trajectory]) -> Trajectory:
    """Runs one after the other as one: turns numbered through, tokens and times summed, the last one's end."""
    if not runs:
        return Trajectory("ok", None)
    numbered = []
    turns = 0
    for run in runs:
        numbered.append(_renumber(run, turns))
        turns += _count_turns(run)
    calls = [call for run in numbered for call in run.calls]
    return replace(
        runs[-1],
        messages=[message for run in runs for message in run.messages],
        skills_loaded=list(dict.fromkeys(name for run in runs for name in run.skills_loaded)),
        tool_calls=[call for run in numbered for call in run.tool_calls],
        hooks=[hook for run in numbered for hook in run.hooks],
        calls=calls,
        usage=Usage(
            _sum(run.usage.prompt_tokens for run in runs),
            _sum(run.usage.completion_tokens for run in runs),
            _sum(run.usage.cached_tokens for run in runs),
        ),
        latency_ms=_sum(run.latency_ms for run in runs),
        retries=_sum(run.retries for run in runs),
    )


_Number = TypeVar("_Number", int, float)
_Turned = TypeVar("_Turned", ToolCallRecord, HookRecord, CallRecord)


def _renumber(run: Trajectory, turns: int) -> Trajectory:
    """The run with its turns counted on from so many before it."""

    def shift(records: list[_Turned]) -> list[_Turned]:
        return [replace(record, turn=min(record.turn + turns, MOST)) for record in records]

    return replace(run, tool_calls=shift(run.tool_calls), hooks=shift(run.hooks), calls=shift(run.calls))


def _count_turns(run: Trajectory) -> int:
    """Turns are the agent's messages, which is how a page numbers them."""
    return sum(message.get("role") == "assistant" for message in run.messages)


def sum_usage(calls: list[CallRecord]) -> Usage:
    """The tokens of these calls together."""
    return Usage(
        _sum(call.prompt_tokens for call in calls),
        _sum(call.completion_tokens for call in calls),
        _sum(call.cached_tokens for call in calls),
    )


def sum_latency(calls: list[CallRecord], tool_calls: list[ToolCallRecord]) -> float:
    """Milliseconds from the first call to the last; tool calls of one turn are made together."""
    longest: dict[int, float] = {}
    for call in tool_calls:
        longest[call.turn] = max(longest.get(call.turn, 0.0), call.ms)
    return _sum([*(call.ms for call in calls), *longest.values()])


def _sum(numbers: Iterable[_Number]) -> _Number:
    """The sum, as far as it can be read back."""
    return min(sum(numbers, start=0), MOST)


def _evidence(call: ToolCallRecord) -> dict[str, Any]:
    made = {"tool": call.name, "arguments": call.arguments}
    return (
        {**made, "result": call.result} if call.error is None else {**made, "error": call.error.split(":")[0]}
    )
