"""Finds the result of each tool call of a conversation."""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from typing import Any

from evolution.adapters.formats.calls import Message, parse_arguments
from evolution.adapters.formats.shapes import as_text, parse_json
from harness_repo.runtime.trajectory import ToolCallRecord

_SHOWN = 200


class _Results:
    """The tool messages of a conversation, each of which answers one call."""

    def __init__(self, messages: list[Message]) -> None:
        self._messages = messages
        self._taken: set[int] = set()
        self._by_id: dict[str, deque[int]] = defaultdict(deque)
        for place, message in enumerate(messages):
            if message["role"] == "tool" and message.get("tool_call_id"):
                self._by_id[str(message["tool_call_id"])].append(place)

    def find(self, call: Message, place: int, turn: range) -> Message | None:
        """The result of a call that was made at a place: by id, else by name and order within the turn."""
        known = self._by_id.get(call["id"]) if call["id"] else None
        # Some models number their calls anew in every turn, so that an id alone is not enough.
        while known and known[0] < place:
            known.popleft()
        if known:
            return self._messages[known.popleft()]
        return self._take_unnamed(call["function"]["name"], turn)

    def _take_unnamed(self, name: str, turn: range) -> Message | None:
        free = [
            place
            for place in turn
            if place not in self._taken
            and self._messages[place]["role"] == "tool"
            and not self._messages[place].get("tool_call_id")
        ]
        named = [place for place in free if self._messages[place].get("name") == name]
        # A name that differs is another call's; without names the order says it.
        unnamed = [place for place in free if not self._messages[place].get("name")]
        chosen = next(iter(named or unnamed), None)
        if chosen is None:
            return None
        self._taken.add(chosen)
        return self._messages[chosen]


def pair_calls(messages: list[Message], errors: Mapping[str, str]) -> list[ToolCallRecord]:
    """The calls of checked messages with their results; `errors` says of calls, by id, how they failed."""
    results = _Results(messages)
    records = []
    for turn, place, upto in _list_turns(messages):
        for call in messages[place].get("tool_calls") or ():
            result = results.find(call, place, range(place + 1, upto))
            records.append(_record(call, result, turn, errors.get(call["id"], "")))
    return records


def _list_turns(messages: list[Message]) -> Iterator[tuple[int, int, int]]:
    """The number of each turn of the agent, where its message stands, and where that of the next one does."""
    places = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    ends = [*places, len(messages)][1:]
    yield from zip(range(1, len(places) + 1), places, ends, strict=True)


def _record(call: Message, result: Message | None, turn: int, error: str) -> ToolCallRecord:
    function = call["function"]
    return ToolCallRecord(
        turn=turn,
        id=as_text(call["id"]),
        name=as_text(function["name"]),
        arguments=parse_arguments(function["arguments"]),
        result=None if result is None else parse_json(result["content"]),
        error=_read_error(result, error),
        ms=0.0,
    )


def _read_error(result: Message | None, error: str) -> str | None:
    """A call's error. OpenAI's tool messages have no field for it; by convention the text starts with the word."""
    if error:
        return f"error: {error[:_SHOWN]}"
    if result is None:
        return "no_result"
    content: Any = result["content"] or ""
    has_failed = result.get("is_error") or content.lower().startswith("error")
    return f"error: {content[:_SHOWN]}" if has_failed else None
