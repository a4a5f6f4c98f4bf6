"""JSON of a given shape from servers that can't promise it: the request steps down until the server takes it.

A schema in the request; without that, any JSON object and the schema in the prompt; without that, the prompt only.
What comes back is validated by whoever asked, on each of these steps.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from evolution.adapters.completions import request_body
from harness_repo.runtime.chat import ChatError, ChatRequest, Message

# A 400 that is about something else; asking again in another format would get the same.
_OTHER_REASON = re.compile(
    r"context.{0,8}length|too long|(?:maximum|max|too many).{0,20}tokens|content.?(?:filter|policy)|safety",
    re.IGNORECASE,
)
# A 400 that says what it does not take.
_FORMAT_REASON = re.compile(
    r"response.?format|json.?(?:schema|object|mode)|structured.?output|guided|grammar|xgrammar|outlines",
    re.IGNORECASE,
)
# Refusals that do not say so, in a row, each of which went well without the format.
ENOUGH_REFUSALS = 2
# Seconds after which a better format is tried again: servers are updated.
REMEMBERED = 3600.0
INSTRUCTIONS = (
    "Answer with one JSON object only: no other text, and no code fence around it. "
    "It has to be valid against this JSON Schema:\n"
)


class AnswerFormat(IntEnum):
    """How a server is asked for JSON, the best first."""

    SCHEMA = 0
    ANY_OBJECT = 1
    INSTRUCTIONS = 2


@dataclass
class _Learnt:
    """What is known of one model and schema."""

    first: AnswerFormat = AnswerFormat.SCHEMA
    until: float = 0.0
    refusals: int = 0


class FormatMemory:
    """Which format an endpoint takes, for each model and schema, once it has refused a better one.

    One refusal may be about anything: it counts at once when it names the format, and otherwise when the next one is
    the same. What was learnt is forgotten after a while.
    """

    # Whether the endpoint takes a seed, until it has refused one.
    takes_seed = True

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._learnt: dict[tuple[str, str], _Learnt] = {}

    def formats(self, request: ChatRequest) -> Iterator[AnswerFormat]:
        """The formats worth trying for a request, the best first; the first one says nothing without a schema."""
        if request.response_schema is None:
            return iter([AnswerFormat.SCHEMA])
        # Most servers take everything, and a schema's digest costs more than the rest of it.
        if not self._learnt:
            return iter(AnswerFormat)
        learnt = self._learnt.get(_key(request), _Learnt())
        first = learnt.first if learnt.until > self._clock() else AnswerFormat.SCHEMA
        return (one for one in AnswerFormat if one >= first)

    def keep(self, request: ChatRequest, taken: AnswerFormat, refusals: Sequence[ChatError] = ()) -> None:
        """Remember what worked, for the same model and schema, and what was refused in better formats before it."""
        if request.response_schema is None or not (refusals or self._learnt):
            return
        if not refusals:
            # What was asked first went well; only what has been learnt already stays.
            learnt = self._learnt.get(_key(request))
            if learnt is not None:
                learnt.refusals = 0
            return
        learnt = self._learnt.setdefault(_key(request), _Learnt())
        learnt.refusals += 1
        is_told = any(_FORMAT_REASON.search(str(refusal)) for refusal in refusals)
        if is_told or learnt.refusals >= ENOUGH_REFUSALS:
            learnt.first, learnt.until, learnt.refusals = taken, self._clock() + REMEMBERED, 0


def is_about_the_format(failure: ChatError) -> bool:
    """Whether a refusal of a request with a schema may be the schema's fault."""
    return failure.kind == "refused" and not _OTHER_REASON.search(str(failure))


def body_in(request: ChatRequest, answer_format: AnswerFormat) -> dict[str, Any]:
    """The body of a request that asks for its schema in the format."""
    body = request_body(request)
    if answer_format is AnswerFormat.SCHEMA or request.response_schema is None:
        return body
    schema = request.response_schema.get("schema", {})
    text = INSTRUCTIONS + json.dumps(schema, ensure_ascii=False)
    del body["response_format"]
    if answer_format is AnswerFormat.ANY_OBJECT:
        body["response_format"] = {"type": "json_object"}
    return {**body, "messages": _instruct(request.messages, text)}


def _instruct(messages: list[Message], text: str) -> list[Message]:
    """The messages with a text at the end of the system prompt: many templates take only one, and only at the start."""
    if not messages or messages[0].get("role") != "system":
        return [{"role": "system", "content": text}, *messages]
    system = messages[0]
    content = system.get("content") or ""
    told = f"{content}\n\n{text}" if isinstance(content, str) else [*content, {"type": "text", "text": text}]
    return [{**system, "content": told}, *messages[1:]]


def _key(request: ChatRequest) -> tuple[str, str]:
    schema = json.dumps(request.response_schema, sort_keys=True, default=str)
    return request.model, hashlib.sha256(schema.encode()).hexdigest()
