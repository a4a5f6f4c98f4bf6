"""Runs as tracing products log them, steps with inputs and outputs, put together to the conversation they amount to.

The step whose chat is the fullest has it, as models are sent all that was said before. What it lacks, results of tools
and the last answer, is taken from the other steps.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from evolution.adapters.formats.chats import Chat, find_chat, unpack_value
from evolution.adapters.formats.messages import Message, check_messages, last_reply
from evolution.adapters.formats.parts import render_content
from evolution.adapters.formats.values import RecordProblem
from harness_repo.runtime.trajectory import CallRecord

MOST_ERRORS = 20
LONGEST_ERROR = 2000
_COMMIT = re.compile(r"[0-9a-f]{40}")
_COMMIT_NAMES = (
    "harness_commit",
    "vcs.ref.head.revision",
    "git_commit",
    "git.commit",
    "commit",
    "revision_id",
    "revision",
)
_EARLIEST = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Step:
    """One thing that happened in a run: a model call, a tool call, or what holds others."""

    id: str
    parent_id: str = ""
    kind: Literal["llm", "tool", "other"] = "other"
    name: str = ""
    start: datetime | None = None
    end: datetime | None = None
    input: Any = None
    output: Any = None
    # what it failed with
    error: str = ""
    model: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    # tools that were offered, as OpenAI defines them
    tools: list[Message] = field(default_factory=list)

    @property
    def ms(self) -> float:
        """How long it took; 0 where the source does not say."""
        took = (self.end - self.start).total_seconds() if self.start and self.end else 0.0
        return max(took, 0.0) * 1000


@dataclass(frozen=True)
class Run:
    """What the steps amount to."""

    # checked
    messages: list[Message]
    calls: list[CallRecord]
    errors: tuple[str, ...]
    tools: list[Message]
    model: str


@dataclass(frozen=True)
class _Candidate:
    step: Step
    messages: list[Message]
    tools: list[Message]


def assemble(steps: Iterable[Step], asked: Any = None, answered: Any = None) -> Run:
    """Put a run together; without messages where nothing was said.

    `asked` and `answered` are input and output of the whole.
    """
    ordered = sorted(steps, key=lambda step: step.start or _EARLIEST)
    chosen = _choose([_read_candidate(step) for step in ordered], _read_request(asked))
    messages = _complete(chosen.messages, ordered, answered) if chosen else _read_bare(asked, answered)
    calls = list(_list_calls(ordered, sum(message["role"] == "assistant" for message in messages)))
    tools = (chosen.tools if chosen else []) or next((step.tools for step in ordered if step.tools), [])
    model = (chosen.step.model if chosen else "") or next((call.model for call in calls if call.model), "")
    return Run(messages, calls, tuple(_list_errors(ordered)), tools, model)


def find_commit(*places: Any) -> str:
    """The git commit that metadata name, 40 hexadecimal digits; empty where they name none."""
    for place in places:
        for value in [place] if isinstance(place, str) else _named_commits(place):
            if isinstance(value, str) and _COMMIT.fullmatch(value):
                return value
    return ""


def _named_commits(place: Any) -> Iterator[Any]:
    if isinstance(place, Mapping):
        yield from (place.get(name) for name in _COMMIT_NAMES)


def _read_candidate(step: Step) -> _Candidate:
    if step.kind == "tool":
        return _Candidate(step, [], [])
    given = find_chat(step.input, "user")
    made = find_chat(step.output, "assistant")
    sent, received = _check(given), _check(made)
    if step.kind == "llm":
        sent = sent or _say("user", step.input)
        received = received or _say("assistant", step.output)
    return _Candidate(step, _concatenate(sent, received), step.tools or given.tools)


def _check(chat: Chat) -> list[Message]:
    try:
        return check_messages(chat.messages) if chat.messages else []
    except RecordProblem:
        return []


def _say(role: str, value: Any) -> list[Message]:
    """A text that a model was given, or answered, without a role."""
    text = unpack_value(value)
    # The word for nothing of a program in Python.
    if not isinstance(text, str) or not text.strip() or text == "None":
        return []
    return check_messages([{"role": role, "content": text}])


def _concatenate(sent: list[Message], received: list[Message]) -> list[Message]:
    """What was sent and received; a step that keeps a state returns all of it."""
    repeats = len(received) > len(sent) and all(map(_is_same, sent, received))
    return received if repeats else [*sent, *received]


def _is_same(one: Message, other: Message) -> bool:
    return bool(one["role"] == other["role"] and (one["content"] or "") == (other["content"] or ""))


def _choose(candidates: Sequence[_Candidate], asked: str) -> _Candidate | None:
    """The fullest chat, of those that hold what the user asked if any does; of equals the last."""
    full = [candidate for candidate in candidates if candidate.messages]
    return max(full, key=lambda candidate: _rank(candidate, asked), default=None)


def _rank(candidate: _Candidate, asked: str) -> tuple[bool, int, bool, bool, datetime]:
    messages = candidate.messages
    said = [message["content"] or "" for message in messages if message["role"] == "user"]
    is_meant = bool(asked) and any(asked in text for text in said)
    is_answered = messages[-1]["role"] == "assistant" and bool(messages[-1]["content"])
    is_call = candidate.step.kind == "llm"
    return is_meant, len(messages), is_answered, is_call, candidate.step.start or _EARLIEST


def _read_request(asked: Any) -> str:
    """The text that the user said last, where the whole run's input says it."""
    value = unpack_value(asked)
    if isinstance(value, str):
        return value.strip()
    messages = _check(find_chat(value, "user"))
    return next((m["content"] or "" for m in reversed(messages) if m["role"] == "user"), "").strip()


def _complete(messages: list[Message], steps: Sequence[Step], answered: Any) -> list[Message]:
    completed = list(_add_results(messages, steps))
    if completed[-1]["role"] == "assistant" and completed[-1]["content"]:
        return completed
    reply = _read_reply(answered)
    return [*completed, {"role": "assistant", "content": reply}] if reply else completed


def _add_results(messages: list[Message], steps: Sequence[Step]) -> Iterator[Message]:
    """The messages, with the results of calls that only the steps of the tools have."""
    known = {message.get("tool_call_id") for message in messages if message["role"] == "tool"}
    used: set[str] = set()
    for place, message in enumerate(messages):
        yield message
        is_open = place + 1 == len(messages) or messages[place + 1]["role"] != "tool"
        for call in message.get("tool_calls", ()) if is_open else ():
            step = None if call["id"] in known else _find_tool(call["function"]["name"], steps, used)
            if step is not None:
                used.add(step.id)
                yield _result_of(step, call)


def _find_tool(name: str, steps: Sequence[Step], used: set[str]) -> Step | None:
    """The first step, not taken yet, that ran this tool, such as "get_weather" or "running tool: get_weather"."""
    if not name:
        return None
    ends = re.compile(rf"(?:^|[\s.:/]){re.escape(name)}$")
    return next(
        (
            step
            for step in steps
            if step.id not in used
            and step.kind != "llm"
            and ends.search(step.name)
            and (step.output is not None or step.error)
        ),
        None,
    )


def _result_of(step: Step, call: Message) -> Message:
    found = _check(find_chat(step.output, "tool"))
    if step.error:
        text = f"Error: {step.error[:LONGEST_ERROR]}"
    elif found and found[0]["role"] == "tool":
        text = found[0]["content"]
    else:
        text = render_content(step.output) or ""
    return {"role": "tool", "content": text, "tool_call_id": call["id"], "name": call["function"]["name"]}


def _read_reply(answered: Any) -> str:
    value = unpack_value(answered)
    if isinstance(value, str):
        return value
    return last_reply(_check(find_chat(value, "assistant")))


def _read_bare(asked: Any, answered: Any) -> list[Message]:
    """A run without a chat: its input is what was asked, its output the answer, both as they stand."""
    return [
        {"role": role, "content": text}
        for role, value in (("user", asked), ("assistant", answered))
        if (text := _render(value))
    ]


def _render(value: Any) -> str:
    unpacked = unpack_value(value)
    if unpacked is None or unpacked in ({}, []):
        return ""
    return (
        render_content(unpacked) or ""
        if isinstance(unpacked, str)
        else json.dumps(unpacked, ensure_ascii=False)
    )


def _list_calls(steps: Sequence[Step], turns: int) -> Iterator[CallRecord]:
    """The model calls. Instrumentations of several layers log one several times; the innermost is taken."""
    made = [step for step in steps if step.kind == "llm"]
    outer = {step.parent_id for step in made}
    inner = [step for step in made if step.id not in outer]
    for number, step in enumerate(inner, 1):
        yield CallRecord(
            min(number, max(turns, 1)),
            step.ms,
            step.prompt_tokens,
            step.completion_tokens,
            step.model,
            step.cached_tokens,
        )


def _list_errors(steps: Sequence[Step]) -> list[str]:
    """What steps failed with, once each: those around a step that failed tell the same of it."""
    errors: dict[str, str] = {}
    for step in reversed(steps):
        if step.error:
            text = step.error[:LONGEST_ERROR]
            errors.setdefault(text, f"{step.name}: {text}" if step.name else text)
    return list(errors.values())[:MOST_ERRORS][::-1]
