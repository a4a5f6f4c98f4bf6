"""JSON of a given shape from servers that can't promise it: the request steps down until the server takes it.

A schema in the request; without that, any JSON object and the schema in the prompt; without that, the prompt only.
What comes back is validated by whoever asked, on each of these steps.
"""

import json
import re
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from evolution.adapters.completions import request_body
from harness_repo.runtime.chat import ChatError, ChatRequest, Message

# A 400 that is about something else; asking again in another format would get the same.
_OTHER_REASON = re.compile(
    r"context.{0,8}length|too long|(?:maximum|max|too many).{0,20}tokens|content.?(?:filter|policy)|safety",
    re.IGNORECASE,
)
INSTRUCTIONS = (
    "Answer with one JSON object only: no other text, and no code fence around it. "
    "It has to be valid against this JSON Schema:\n"
)


class AnswerFormat(IntEnum):
    """How a server is asked for JSON, the best first."""

    SCHEMA = 0
    ANY_OBJECT = 1
    INSTRUCTIONS = 2


class FormatMemory:
    """Which format an endpoint takes, for each model and schema, once it has refused a better one."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, str], AnswerFormat] = {}

    def formats(self, request: ChatRequest) -> Iterator[AnswerFormat]:
        """The formats worth trying for a request, the best first; the first one says nothing without a schema."""
        if request.response_schema is None:
            return iter([AnswerFormat.SCHEMA])
        first = self._taken.get(_key(request), AnswerFormat.SCHEMA)
        return (one for one in AnswerFormat if one >= first)

    def keep(self, request: ChatRequest, taken: AnswerFormat) -> None:
        """Remember what worked, for the same model and schema."""
        if taken is not AnswerFormat.SCHEMA:
            self._taken[_key(request)] = taken


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
    return request.model, str((request.response_schema or {}).get("name"))
