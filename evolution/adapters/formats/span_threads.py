"""Which of a trace's model calls belong together, and which conversation is the one with the user.

An agent sends its whole conversation again with every call, so that a call that begins with what another one said goes
on with it. Calls of sub-agents, judges and routers begin otherwise, and are threads of their own.
"""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from evolution.adapters.formats.genai_dialects import read_said
from evolution.adapters.formats.genai_payloads import read_messages
from evolution.adapters.formats.messages import Message, check_messages
from evolution.adapters.formats.shapes import parse_json
from evolution.adapters.formats.span_attributes import find
from evolution.adapters.formats.span_tree import ASIDE, EMBEDDING, MODEL, RETRIEVER, TOOL, Span, Tree
from evolution.adapters.formats.values import RecordProblem

# Where conventions that know no messages keep what went into a span, and what came out.
_INPUTS = (
    "langfuse.observation.input", "input.value", "traceloop.entity.input", "genkit:input", "mlflow.spanInputs",
    "langfuse.trace.input", "input", "ai.value", "ai.values",
)  # fmt: skip
_OUTPUTS = (
    "langfuse.observation.output", "output.value", "traceloop.entity.output", "genkit:output", "mlflow.spanOutputs",
    "langfuse.trace.output", "output",
)  # fmt: skip
_INSIDE = frozenset({TOOL, ASIDE, RETRIEVER, EMBEDDING})
_Key = tuple[Any, ...]


@dataclass
class Turn:
    """A span in which a model was asked, and the agent's turn that it brought, from 1."""

    span: Span
    number: int


@dataclass
class Thread:
    """A conversation, and the spans that it was in, in order."""

    messages: list[Message] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    # what was sent in the last call, and all of the thread, to be compared
    sent: list[_Key] = field(default_factory=list)
    keys: list[_Key] = field(default_factory=list)

    def takes(self, call: "_Call") -> bool:
        """Whether a call goes on with this conversation."""
        begins = call.keys[: len(self.keys)] == self.keys or call.keys[: len(self.sent)] == self.sent
        return (begins and bool(self.sent)) or self._is_answered_by(call)

    def add(self, call: "_Call") -> None:
        """Go on with a call that the thread takes, or begin with one."""
        if self._is_answered_by(call):
            before = self.messages
            inputs, outputs = [*before, *call.inputs], call.outputs
        else:
            inputs, outputs = call.inputs, call.outputs
        self.messages = [*inputs, *outputs]
        self.sent = [_key(message) for message in inputs]
        self.keys = [*self.sent, *map(_key, outputs)]
        asked = sum(message["role"] == "assistant" for message in inputs)
        self.turns.append(Turn(call.span, asked + bool(outputs) if outputs else max(asked, 1)))

    def _is_answered_by(self, call: "_Call") -> bool:
        """Whether a call sends nothing but the results of the calls that the thread ends in, as Responses do."""
        first = call.first
        if first is None or first["role"] != "tool":
            return False
        return first.get("tool_call_id") in _pending(self.messages)


@dataclass
class _Call:
    span: Span
    inputs: list[Message]
    outputs: list[Message]

    def __post_init__(self) -> None:
        self.keys = [_key(message) for message in (*self.inputs, *self.outputs)]

    @property
    def first(self) -> Message | None:
        """The first message that is no instruction."""
        return next((m for m in self.inputs if m["role"] not in {"system", "developer"}), None)

    @property
    def begins_with_results(self) -> bool:
        """Whether nothing but instructions stands before the result of a tool."""
        return self.first is not None and self.first["role"] == "tool"


def find_conversation(tree: Tree) -> Thread:
    """The conversation with the user: the thread whose answer the root gave, else the longest, else the last.

    Where no span has messages it is what the outermost span says of its input and output; empty where none does.
    """
    calls = [call for span in tree.spans if (call := _read_call(span))]
    outer = [call for call in calls if not _is_inside(tree, call.span)]
    threads = _join_calls(outer or calls)
    if not threads:
        return _read_outermost(tree)
    given = _read_output(tree.root)
    return max(enumerate(threads), key=lambda numbered: _weight(numbered[1], given, numbered[0]))[1]


def _is_inside(tree: Tree, span: Span) -> bool:
    return span.kind in _INSIDE or tree.stands_in(span, _INSIDE)


def _join_calls(calls: list[_Call]) -> list[Thread]:
    threads: list[Thread] = []
    by_start: dict[_Key, list[Thread]] = defaultdict(list)
    # A span around others starts first and ends last; what it says is the sum of them.
    for call in sorted(calls, key=lambda call: (call.span.end or call.span.start, len(call.keys))):
        # Only results alone may go on with a thread that begins otherwise.
        able = threads if call.begins_with_results else by_start[call.keys[0]]
        thread = next((thread for thread in reversed(able) if thread.takes(call)), None)
        if thread is None:
            threads.append(thread := Thread())
            by_start[call.keys[0]].append(thread)
        elif len(call.keys) < len(thread.keys) and call.keys == thread.keys[: len(call.keys)]:
            continue
        thread.add(call)
    return threads


def _weight(thread: Thread, given: str, number: int) -> tuple[bool, int, int]:
    replies = [message["content"] for message in thread.messages if message["role"] == "assistant"]
    return (bool(given) and given in replies[-1:], len(thread.messages), number)


def _read_call(span: Span) -> _Call | None:
    said = read_said(span)
    if not (said.inputs or said.outputs) and span.kind == MODEL:
        said.inputs = read_messages(find(span.attributes, *_INPUTS), "user")
        said.outputs = read_messages(find(span.attributes, *_OUTPUTS), "assistant")
    inputs, outputs = checked(said.inputs), checked(said.outputs)
    sent = [_key(message) for message in inputs]
    answered = [_key(message) for message in outputs]
    # Some conventions have the answer among all messages, and again by itself.
    if answered and sent[-len(answered) :] == answered:
        inputs = inputs[: -len(answered)]
    return _Call(span, inputs, outputs) if inputs or outputs else None


def checked(messages: list[dict[str, Any]]) -> list[Message]:
    """The messages in OpenAI's shape; one that can't be read stands there as its JSON, so that it is seen."""
    try:
        return check_messages(messages) if messages else []
    except RecordProblem:
        if len(messages) > 1:
            return [read for message in messages for read in checked([message])]
        return [{"role": "user", "content": json.dumps(messages[0], ensure_ascii=False)}]


def _read_outermost(tree: Tree) -> Thread:
    others = [span for span in tree.spans if span is not tree.root]
    for span in [tree.root, *others]:
        if span.kind in {TOOL, ASIDE, RETRIEVER}:
            continue
        inputs = checked(read_messages(find(span.attributes, *_INPUTS), "user"))
        outputs = checked(read_messages(find(span.attributes, *_OUTPUTS), "assistant"))
        if inputs or outputs:
            return Thread([*inputs, *outputs], [])
    return Thread()


def _read_output(root: Span) -> str:
    """What the root span gave as its answer, where that is a text."""
    outputs = read_said(root).outputs or read_messages(find(root.attributes, *_OUTPUTS), "assistant")
    found = checked(outputs)
    return str(found[-1]["content"] or "") if found else ""


def _pending(messages: list[Message]) -> set[str]:
    """The ids of the calls at the end of the messages that have no result yet."""
    answered = {message.get("tool_call_id") for message in messages if message["role"] == "tool"}
    last = next((m for m in reversed(messages) if m["role"] == "assistant"), {})
    return {call["id"] for call in last.get("tool_calls") or [] if call["id"]} - answered


def _key(message: Message) -> _Key:
    """What two messages are compared by: role, text and calls, whichever way the arguments are written."""
    calls = [
        (call["function"]["name"], json.dumps(parse_json(call["function"]["arguments"]), sort_keys=True))
        for call in message.get("tool_calls") or []
    ]
    return (message["role"], message["content"] or "", *calls)
