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
    """A tool call with its arguments and result, JSON values; a result of None is none."""

    name: str
    summary: str
    arguments: Any
    result: Any
    error: str
    ms: float | None
    # Where both stand in the trajectory, as JSON pointers.
    arguments_path: str = ""
    result_path: str = ""
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
    # Where text and thinking stand in the trajectory, as JSON pointers.
    path: str = ""
    thinking_path: str = ""

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


@dataclass(frozen=True)
class GapView:
    """Messages that are left out, so that a page stays a page."""

    count: int
    role: str = "gap"


def read_turns(trajectory: Any) -> list[TurnView]:
    """The messages of a trajectory; tool messages are shown as the results of the calls they answer."""
    if not isinstance(trajectory, dict):
        return []
    messages = _numbered(trajectory, "messages")
    known = _Known(trajectory, messages)
    called = _called_ids(messages)
    turns: list[TurnView] = []
    number = 0
    for place, (index, message) in enumerate(messages):
        role = str(message.get("role", ""))
        if role == "tool" and str(message.get("tool_call_id")) in called:
            continue
        number += role == "assistant"
        path = f"/messages/{index}"
        calls = [
            known.view_call(call, number, place, f"{path}/tool_calls/{nth}")
            for nth, call in _numbered(message, "tool_calls")
        ]
        made_at, made = known.made.get(str(number), ("", {})) if role == "assistant" else ("", {})
        hooks = known.take_hooks(role, number)
        text = text_of(message.get("content"))
        turns.append(
            TurnView(role, text, number, calls, hooks, made, f"{path}/content", f"{made_at}/reasoning")
        )
    return turns


def keep_shown(turns: list[TurnView], marked: Any = None) -> list[TurnView | GapView]:
    """The turns that a page shows: all, or of very many the first, the last, and those around the marked turn."""
    if len(turns) <= 2 * MOST_AT_AN_END:
        return list(turns)
    kept = set(range(MOST_AT_AN_END)) | set(range(len(turns) - MOST_AT_AN_END, len(turns)))
    for place, turn in enumerate(turns):
        if turn.role == "assistant" and turn.turn == marked:
            kept |= set(range(max(place - 10, 0), min(place + 10, len(turns))))
    shown: list[TurnView | GapView] = []
    before = -1
    for place in sorted(kept):
        if place > before + 1:
            shown.append(GapView(place - before - 1))
        shown.append(turns[place])
        before = place
    return shown


def read_loose_calls(trajectory: Any) -> list[CallView]:
    """The tool calls that stand in no message: an agent that is not ours may tell its calls and its reply alone."""
    if not isinstance(trajectory, dict):
        return []
    in_messages = Counter(
        str(call.get("id"))
        for message in _rows(trajectory, "messages")
        for call in _rows(message, "tool_calls")
    )
    loose = []
    for index, record in _numbered(trajectory, "tool_calls"):
        key = str(record.get("id"))
        in_messages[key] -= 1
        if in_messages[key] < 0:
            recorded = (f"/tool_calls/{index}", record)
            loose.append(_view_call(record, recorded, ("", {}), recorded[0]))
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


# An entry of a list in the trajectory with its JSON pointer.
_Placed = tuple[str, dict[str, Any]]
_NOTHING: _Placed = ("", {})


class _Known:
    """What a trajectory says of its messages elsewhere."""

    def __init__(self, trajectory: dict[str, Any], messages: list[tuple[int, dict[str, Any]]]) -> None:
        self._messages = messages
        self._hooks: dict[tuple[str, bool], list[dict[str, Any]]] = {}
        for hook in _rows(trajectory, "hooks"):
            self._hooks.setdefault((str(hook.get("turn")), hook.get("event") == "input"), []).append(hook)
        records = [(f"/tool_calls/{at}", record) for at, record in _numbered(trajectory, "tool_calls")]
        # An id may come again in a later turn, and imported trajectories have no turns.
        self._records = {str(call.get("id")): (path, call) for path, call in records}
        self._by_turn = {(str(call.get("turn")), str(call.get("id"))): (path, call) for path, call in records}
        self._answers = _answers(messages)
        self.made = {
            str(call.get("turn")): (f"/calls/{at}", call) for at, call in _numbered(trajectory, "calls")
        }

    def take_hooks(self, role: str, number: int) -> list[dict[str, Any]]:
        """The hooks of a message that no message before it has."""
        if role not in ("user", "assistant"):
            return []
        return self._hooks.pop((str(number), role == "user"), [])

    def view_call(self, call: dict[str, Any], number: int, place: int, path: str) -> CallView:
        """A call of the message at that place, with its result."""
        key = str(call.get("id"))
        record = self._by_turn.get((str(number), key)) or self._records.get(key) or _NOTHING
        following = self._messages[place + 1 : place + 1 + MOST_CALLS]
        near = _answers(following[: _count_tools(following)])
        return _view_call(call, record, near.get(key) or self._answers.get(key) or _NOTHING, path)


# Nobody calls more tools in one turn.
MOST_CALLS = 200
# Messages that are shown of the beginning and of the end, where there are more than both.
MOST_AT_AN_END = 150


def _answers(messages: list[tuple[int, dict[str, Any]]]) -> dict[str, _Placed]:
    return {
        str(message.get("tool_call_id")): (f"/messages/{index}", message)
        for index, message in messages
        if message.get("role") == "tool"
    }


def _count_tools(messages: list[tuple[int, dict[str, Any]]]) -> int:
    """How many tool messages stand at the beginning."""
    return next((n for n, (_, m) in enumerate(messages) if m.get("role") != "tool"), len(messages))


def _called_ids(messages: list[tuple[int, dict[str, Any]]]) -> set[str]:
    return {str(call.get("id")) for _, message in messages for call in _rows(message, "tool_calls")}


def _numbered(record: dict[str, Any], name: str) -> list[tuple[int, dict[str, Any]]]:
    """The objects of a list, each with its place in it."""
    rows = record.get(name)
    return [(n, row) for n, row in enumerate(rows) if isinstance(row, dict)] if isinstance(rows, list) else []


def _rows(record: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [row for _, row in _numbered(record, name)]


def _view_call(call: dict[str, Any], recorded: _Placed, answered: _Placed, path: str) -> CallView:
    (record_path, record), (answer_path, answer) = recorded, answered
    nested = call.get("function")
    function = nested if isinstance(nested, dict) else call
    is_recorded = "arguments" in record
    arguments = record["arguments"] if is_recorded else _parse(function.get("arguments"))
    own_path = f"{path}/function/arguments" if isinstance(nested, dict) else f"{path}/arguments"
    has_result = record.get("result") is not None
    return CallView(
        name=str(function.get("name", "")),
        summary=_summarise(arguments),
        arguments=arguments,
        result=record["result"] if has_result else _parse(answer.get("content")),
        error=str(record.get("error") or ""),
        ms=record.get("ms"),
        arguments_path=f"{record_path}/arguments" if is_recorded else own_path,
        result_path=f"{record_path}/result" if has_result else f"{answer_path}/content",
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
        # A few, each cut first: an argument may be a file.
        named = list(arguments.items())[:20]
        text = ", ".join(f"{name}={_shorten(value)}" for name, value in named)
    else:
        text = _shorten(arguments) if arguments else ""
    return text if len(text) <= 120 else text[:117] + "..."


def _shorten(value: Any) -> str:
    if isinstance(value, str):
        return repr(value[:120])
    return repr(value) if not isinstance(value, dict | list) else repr(value)[:120]


def text_of(content: Any) -> str:
    """The text of a message, whose content may be a list of parts; what is no text is named."""
    if isinstance(content, list):
        return "\n".join(_part(part) for part in content)
    return "" if content is None else str(content)


def _part(part: Any) -> str:
    if not isinstance(part, dict):
        return str(part)
    if isinstance(part.get("text"), str):
        return str(part["text"])
    image = part.get("image_url")
    address = image.get("url") if isinstance(image, dict) else image
    # Never the data itself, and never fetched.
    shown = address if isinstance(address, str) and not address.startswith("data:") else ""
    return f"[{part.get('type') or 'part'}{f': {shown[:300]}' if shown else ''}]"


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
