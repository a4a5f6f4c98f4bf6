"""Calls of tools that have spans of their own: what was called, what came back, and where in the conversation."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from evolution.adapters.formats.messages import Message
from evolution.adapters.formats.parts import render_content
from evolution.adapters.formats.shapes import as_dict, as_list, parse_json, unpack_json
from evolution.adapters.formats.span_attributes import find, find_text, list_entries
from evolution.adapters.formats.span_errors import describe_error
from evolution.adapters.formats.span_tree import RETRIEVER, TOOL, Span, Tree

_NAMES = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "genkit:name", "traceloop.entity.name")
_IDS = ("gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool.id")
# The more particular ones first: `tool.parameters` may be the schema.
_ARGUMENTS = (
    "gen_ai.tool.call.arguments", "tool_arguments", "gcp.vertex.agent.tool_call_args", "ai.toolCall.args",
    "ai.toolCall.input", "input.value", "langfuse.observation.input", "genkit:input", "traceloop.entity.input",
    "mlflow.spanInputs", "tool.parameters", "input",
)  # fmt: skip
_RESULTS = (
    "gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.tool_response", "ai.toolCall.result",
    "ai.toolCall.output", "output.value", "langfuse.observation.output", "genkit:output", "traceloop.entity.output",
    "mlflow.spanOutputs", "output",
)  # fmt: skip
_PREFIXES = ("execute_tool ", "running tool: ", "tools/call ", "ai.toolCall ")
_INSIDE = frozenset({TOOL})


@dataclass(frozen=True)
class ToolUse:
    """One call of a tool, as its span tells it."""

    id: str
    name: str
    arguments: Any
    result: Any
    # how it failed, "" where it did not
    error: str
    ms: float
    start: int
    # a retrieval is the program's doing, and none of the model's
    is_call: bool = True

    @property
    def has_ended(self) -> bool:
        """Whether something came back."""
        return self.result is not None or bool(self.error)

    def to_call(self) -> Message:
        """The call, as a message of the assistant has it."""
        arguments = self.arguments if self.arguments is not None else {}
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}

    def to_message(self, identity: str) -> Message:
        """The result, as a message of the tool."""
        content = self.error if self.result is None else render_content(self.result)
        failed = {"is_error": True} if self.error else {}
        return {"role": "tool", "tool_call_id": identity, "name": self.name, "content": content, **failed}


class Placed(NamedTuple):
    """A conversation with the calls of tools in it, and the uses that are none of its own."""

    messages: list[Message]
    # by the id of the call in the messages
    uses: dict[str, ToolUse]
    loose: list[ToolUse]


def list_tool_uses(tree: Tree) -> list[ToolUse]:
    """The calls of tools of a trace in order; what a tool calls itself is its own affair."""
    spans = [
        span for span in tree.spans if span.kind in {TOOL, RETRIEVER} and not tree.stands_in(span, _INSIDE)
    ]
    return [_read_tool(span) if span.kind == TOOL else _read_retrieval(span) for span in spans]


def place_uses(messages: Sequence[Message], uses: Sequence[ToolUse]) -> Placed:
    """Add to a conversation what it lacks: results of its calls, or all calls where it has none at all."""
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    made = [use for use in uses if use.is_call]
    if not calls and made:
        return _insert_calls(messages, made, [use for use in uses if not use.is_call])
    matched = _match(calls, made)
    taken = set(map(id, matched.values()))
    placed = _insert_results(messages, matched)
    return Placed(placed, matched, [use for use in uses if id(use) not in taken])


def _insert_calls(messages: Sequence[Message], made: list[ToolUse], others: list[ToolUse]) -> Placed:
    """Calls that no message has came before the last answer."""
    has_reply = bool(messages) and messages[-1]["role"] == "assistant"
    before, after = (messages[:-1], messages[-1:]) if has_reply else (messages, [])
    called: list[Message] = []
    for use in made:
        called.append({"role": "assistant", "content": None, "tool_calls": [use.to_call()]})
        called += [use.to_message(use.id)] if use.has_ended else []
    return Placed([*before, *called, *after], {use.id: use for use in made}, others)


def _insert_results(messages: Sequence[Message], matched: dict[str, ToolUse]) -> list[Message]:
    answered = {message.get("tool_call_id") for message in messages if message["role"] == "tool"}
    placed: list[Message] = []
    for message in messages:
        placed.append(message)
        for call in message.get("tool_calls") or ():
            use = matched.get(call["id"])
            if use is not None and use.has_ended and call["id"] not in answered:
                placed.append(use.to_message(call["id"]))
    return placed


def _match(calls: Iterable[Message], uses: Sequence[ToolUse]) -> dict[str, ToolUse]:
    """The use of each call that has an id: by that, else by the name and arguments, else by name and order."""
    matched: dict[str, ToolUse] = {}
    by_id = {use.id: use for use in uses}
    free = list(uses)
    waiting = []
    for call in calls:
        use = by_id.get(call["id"])
        if use is not None and call["id"] not in matched:
            matched[call["id"]] = use
            free.remove(use)
        elif call["id"] and call["id"] not in matched:
            waiting.append(call)
    for is_alike in (_has_same_arguments, _has_same_name):
        for call in waiting:
            use = next((use for use in free if is_alike(call, use)), None)
            if use is not None and call["id"] not in matched:
                matched[call["id"]] = use
                free.remove(use)
    return matched


def _has_same_name(call: Message, use: ToolUse) -> bool:
    return bool(call["function"]["name"] == use.name)


def _has_same_arguments(call: Message, use: ToolUse) -> bool:
    return _has_same_name(call, use) and bool(
        parse_json(call["function"]["arguments"]) == parse_json(use.arguments)
    )


def _read_tool(span: Span) -> ToolUse:
    arguments, result = find(span.attributes, *_ARGUMENTS), find(span.attributes, *_RESULTS)
    arguments = _read_messages_event(span, "gen_ai.tool.message") if arguments is None else arguments
    result = _read_messages_event(span, "gen_ai.choice") if result is None else result
    return ToolUse(
        id=find_text(span.attributes, *_IDS) or f"span-{span.span_id}",
        name=_read_name(span),
        arguments=_unwrap(arguments),
        result=result,
        error=describe_error(span),
        ms=span.ms,
        start=span.start,
    )


def _read_name(span: Span) -> str:
    name = find_text(span.attributes, *_NAMES)
    if name:
        return name
    prefix = next((prefix for prefix in _PREFIXES if span.name.startswith(prefix)), "")
    return span.name.removeprefix(prefix).removesuffix(".tool")


def _read_messages_event(span: Span, name: str) -> Any:
    """Strands has what went into a tool, and what came back, in events."""
    found = [event.attributes for event in span.events if event.name == name]
    return find(found[-1], "content", "message") if found else None


def _unwrap(arguments: Any) -> Any:
    """Decorators note the arguments of a function as {"args": [], "kwargs": {…}}, LangChain as {"input_str": "…"}."""
    values = as_dict(unpack_json(arguments))
    if set(values) == {"args", "kwargs"} and not values["args"]:
        return values["kwargs"]
    if "input_str" in values:
        inner = unpack_json(values["input_str"])
        return inner if isinstance(inner, dict) else {"input": inner}
    return arguments


def _read_retrieval(span: Span) -> ToolUse:
    documents = [
        as_dict(as_dict(entry).get("document"))
        for entry in list_entries(span.attributes, "retrieval.documents")
    ]
    result = (
        documents
        or as_list(unpack_json(find(span.attributes, *_RESULTS)))
        or find(span.attributes, *_RESULTS)
    )
    query = find_text(span.attributes, "input.value", "gen_ai.retrieval.query.text", *_ARGUMENTS)
    return ToolUse(
        id=f"span-{span.span_id}",
        name=_read_name(span),
        arguments=json.dumps({"query": query}, ensure_ascii=False),
        result=result,
        error=describe_error(span),
        ms=span.ms,
        start=span.start,
        is_call=False,
    )
