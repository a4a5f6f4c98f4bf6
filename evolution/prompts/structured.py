"""Asks a model for JSON of a given shape: schema in the request, validated, one attempt at repair, then an error."""

import dataclasses
import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from harness_repo.runtime.chat import ChatModel, ChatReply, ChatRequest

Output = TypeVar("Output", bound=BaseModel)

CODE_FENCE = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
# Enough of a wrong reply to see what was wrong with it.
SHOWN = 2_000


class BadModelOutput(Exception):
    """A model that did not give JSON of the asked shape, even when told what was wrong; `replies` are its texts."""

    def __init__(self, message: str, replies: list[str]) -> None:
        super().__init__(message)
        self.replies = replies


async def ask(model: ChatModel, request: ChatRequest, output: type[Output]) -> tuple[Output, ChatReply]:
    """Return the validated answer and the reply it was read from.

    Raises BadModelOutput after one repair attempt, and ChatError as the model does.
    """
    request = dataclasses.replace(request, response_schema=response_schema(output))
    first = await model.complete(request)
    try:
        return _read(first, output), first
    except ValidationError as failure:
        problem = _explain(failure)
    second = await model.complete(_repair(request, first, problem))
    try:
        return _read(second, output), second
    except ValidationError as failure:
        texts = [first.content or "", second.content or ""]
        raise BadModelOutput(f"{output.__name__}: {_explain(failure)}", texts) from failure


def response_schema(output: type[BaseModel]) -> dict[str, object]:
    """The `response_schema` of a ChatRequest for the model class."""
    return {"name": output.__name__, "schema": output.model_json_schema()}


def _read(reply: ChatReply, output: type[Output]) -> Output:
    text = reply.content or ""
    match = CODE_FENCE.match(text)
    return output.model_validate_json(match.group(1) if match else text)


def _repair(request: ChatRequest, reply: ChatReply, problem: str) -> ChatRequest:
    told = (
        "That was not the JSON asked for. What is wrong:\n"
        f"{problem}\n"
        "Answer again with the corrected JSON object only, without any other text."
    )
    messages = [
        *request.messages,
        {"role": "assistant", "content": (reply.content or "")[:SHOWN]},
        {"role": "user", "content": told},
    ]
    return dataclasses.replace(request, messages=messages)


def _explain(failure: ValidationError) -> str:
    lines = [
        f"- {'.'.join(map(str, error['loc'])) or 'reply'}: {error['msg']}" for error in failure.errors()[:8]
    ]
    return "\n".join(lines)
