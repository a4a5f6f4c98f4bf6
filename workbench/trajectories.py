"""Reads a stored trajectory into what a page shows, turn by turn. Tolerant: imported ones can be anything."""

import json
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from evolution.queries.results import NO_RUN

# How a run can end, in words; what is not here is shown as it stands.
STATUSES: dict[str, Promise] = {
    "turn_limit": gettext_lazy("turns used up"),
    "tool_call_limit": gettext_lazy("tool calls used up"),
    "time_limit": gettext_lazy("time used up"),
    "token_limit": gettext_lazy("tokens used up"),
    "agent_error": gettext_lazy("the agent said that it failed"),
    "hook_limit": gettext_lazy("a hook still refused the reply"),
    "blocked": gettext_lazy("blocked by a hook"),
    "model_error": gettext_lazy("the model failed"),
    "budget": gettext_lazy("stopped by the budget"),
    "runner_error": gettext_lazy("the agent failed"),
    "user_error": gettext_lazy("the simulated user failed"),
    "done": gettext_lazy("the user left"),
}


# What a runner notes, in words.
RUNNER_FIELDS: dict[str, Promise] = {
    "exit_code": gettext_lazy("exit code"),
    "status": gettext_lazy("HTTP status"),
}


@dataclass(frozen=True)
class CallView:
    """A tool call with its arguments and result as text."""

    name: str
    summary: str
    arguments: str
    result: str
    error: str
    ms: float | None
    # The kind of the fault that was injected, or "".
    fault: str = ""
    # As the record has it; "" where it says none.
    turn: str = ""


@dataclass(frozen=True)
class TurnView:
    """One message: `role` as in chat completions; calls belong to an assistant's.

    Hook firings belong to an assistant's message too, those at the input to the user's before it.
    """

    role: str
    text: str
    turn: int
    calls: list[CallView] = field(default_factory=list)
    hooks: list[dict[str, Any]] = field(default_factory=list)
    # The model call that brought an assistant's message, as the trajectory has it.
    made: dict[str, Any] = field(default_factory=dict)

    @property
    def is_cut_off(self) -> bool:
        """Whether the model stopped for want of tokens, or because its server filtered it."""
        return self.made.get("finish_reason") in ("length", "content_filter")

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
    known = _Known(trajectory, messages)
    called = _called_ids(messages)
    turns: list[TurnView] = []
    number = 0
    for position, message in enumerate(messages):
        role = str(message.get("role", ""))
        if role == "tool" and str(message.get("tool_call_id")) in called:
            continue
        number += role == "assistant"
        calls = [known.view_call(call, number, position) for call in _rows(message, "tool_calls")]
        made = known.made.get(str(number), {}) if role == "assistant" else {}
        text = text_of(message.get("content"))
        turns.append(TurnView(role, text, number, calls, known.take_hooks(role, number), made))
    return turns


def read_loose_calls(trajectory: Any) -> list[CallView]:
    """The tool calls that stand in no message: an agent that is not ours may tell its calls and its reply alone."""
    if not isinstance(trajectory, dict):
        return []
    messages = _rows(trajectory, "messages")
    in_messages = Counter(
        str(call.get("id")) for message in messages for call in _rows(message, "tool_calls")
    )
    loose = []
    for record in _rows(trajectory, "tool_calls"):
        key = str(record.get("id"))
        in_messages[key] -= 1
        if in_messages[key] < 0:
            loose.append(_view_call(record, record, {}))
    return loose


def count_faults(trajectory: Any) -> list[tuple[str, str, int]]:
    """What was injected into the tool calls of a run: kind, tool and how often, in the order of first appearance."""
    calls = _rows(trajectory, "tool_calls") if isinstance(trajectory, dict) else []
    struck = Counter((str(call["fault"]), str(call.get("name", ""))) for call in calls if call.get("fault"))
    return [(kind, tool, times) for (kind, tool), times in struck.items()]


@dataclass(frozen=True)
class RunnerView:
    """What the runner of an agent that is not ours noted of a run."""

    kind: str
    # Fields of one line.
    facts: list[tuple[str, str]]
    # The end of what a command wrote to standard error.
    stderr: str


def read_runner(trajectory: Any) -> RunnerView | None:
    """The runner's record; None for our runtime, which has none."""
    found = trajectory.get("runner") if isinstance(trajectory, dict) else None
    if not isinstance(found, dict) or not found:
        return None
    rest = {name: value for name, value in found.items() if name not in ("kind", "stderr")}
    facts = [(str(RUNNER_FIELDS.get(name, name)), _say(value)) for name, value in rest.items()]
    return RunnerView(str(found.get("kind", "")), facts, str(found.get("stderr") or ""))


def _say(value: Any) -> str:
    return "–" if value is None else pretty(value)


class _Known:
    """What a trajectory says of its messages elsewhere."""

    def __init__(self, trajectory: dict[str, Any], messages: list[dict[str, Any]]) -> None:
        self._messages = messages
        self._hooks = _rows(trajectory, "hooks")
        records = _rows(trajectory, "tool_calls")
        # An id may come again in a later turn, and imported trajectories have no turns.
        self._records = {str(call.get("id")): call for call in records}
        self._by_turn = {(str(call.get("turn")), str(call.get("id"))): call for call in records}
        self._answers = _answers(messages)
        self.made = {str(call.get("turn")): call for call in _rows(trajectory, "calls")}

    def take_hooks(self, role: str, number: int) -> list[dict[str, Any]]:
        """The hooks of a message that no message before it has."""
        at_input = role == "user"
        if role not in ("user", "assistant"):
            return []
        taken = [
            hook
            for hook in self._hooks
            if hook.get("turn") == number and (hook.get("event") == "input") == at_input
        ]
        self._hooks = [hook for hook in self._hooks if hook not in taken]
        return taken

    def view_call(self, call: dict[str, Any], number: int, position: int) -> CallView:
        """A call of the message at that position, with its result."""
        key = str(call.get("id"))
        record = self._by_turn.get((str(number), key), self._records.get(key, {}))
        following = self._messages[position + 1 : position + 1 + MOST_CALLS]
        answer = _answers(following[: _count_tools(following)]).get(key, self._answers.get(key, {}))
        return _view_call(call, record, answer)


# Nobody calls more tools in one turn.
MOST_CALLS = 200


def _answers(messages: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {str(m.get("tool_call_id")): m for m in messages if m.get("role") == "tool"}


def _count_tools(messages: list[dict[str, Any]]) -> int:
    """How many tool messages stand at the beginning."""
    return next((n for n, m in enumerate(messages) if m.get("role") != "tool"), len(messages))


def _called_ids(messages: list[dict[str, Any]]) -> set[str]:
    return {str(call.get("id")) for message in messages for call in _rows(message, "tool_calls")}


def _rows(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    rows = record.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _view_call(call: dict[str, Any], record: dict[str, Any], answer: dict[str, Any]) -> CallView:
    nested = call.get("function")
    function = nested if isinstance(nested, dict) else call
    arguments = record.get("arguments", _parse(function.get("arguments")))
    result = record["result"] if record.get("result") is not None else _parse(answer.get("content"))
    return CallView(
        name=str(function.get("name", "")),
        summary=_summarise(arguments),
        arguments=pretty(arguments),
        result="" if result is None else pretty(result),
        error=str(record.get("error") or ""),
        ms=record.get("ms"),
        fault=str(record.get("fault") or ""),
        turn=str(record.get("turn") or ""),
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


def describe_status(status: Any) -> str:
    """How a run ended, in words."""
    return str(STATUSES.get(str(status), status))


def describe_end(status: str) -> str:
    """The same for counting runs: also those that ended by themselves, and where there was none."""
    own = {"ok": gettext("ended by itself"), NO_RUN: gettext("no run")}
    return own.get(status) or describe_status(status)
