"""Asks a model for JSON of a given shape: schema in the request, validated, one attempt at repair, then an error."""

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from evolution.prompts.fences import fenced
from harness_repo.runtime.chat import ChatModel, ChatReply, ChatRequest
from harness_repo.runtime.storable import make_storable

Output = TypeVar("Output", bound=BaseModel)

CODE_FENCE = re.compile(r"^\s*```(?:json)?\s*\n(.*?)\n?\s*```\s*$", re.DOTALL)
# Enough of a wrong reply to see what was wrong with it, and to mend it instead of starting anew.
SHOWN = 20_000
# Of what is wrong with a reply; it may quote the reply itself.
LONGEST_PROBLEM = 8_000


class BadModelOutput(Exception):
    """A model that did not give JSON of the asked shape, even when told what was wrong; `replies` are its texts."""

    def __init__(self, message: str, replies: list[str]) -> None:
        super().__init__(message)
        self.replies = replies


@dataclass(frozen=True)
class Try:
    """A reply, and what was wrong with it; empty for the one that was taken."""

    reply: ChatReply
    problem: str = ""


async def ask(
    model: ChatModel,
    request: ChatRequest,
    output: type[Output],
    *,
    check: Callable[[Output], str] | None = None,
    tries: list[Try] | None = None,
) -> tuple[Output, ChatReply]:
    """Return the validated answer and the reply it was read from.

    `check` says what is wrong with an answer of the right shape, "" for nothing; `tries` gets every reply, also when
    an error ends it. Raises BadModelOutput after one repair attempt, and ChatError as the model does.
    """
    request = dataclasses.replace(request, response_schema=response_schema(output))
    tries = [] if tries is None else tries
    first = await model.complete(request)
    answer, problem = _read(first, output, check)
    tries.append(Try(first, problem))
    if answer is not None:
        return answer, first
    second = await model.complete(_repair(request, first, problem))
    answer, problem = _read(second, output, check)
    tries.append(Try(second, problem))
    if answer is not None:
        return answer, second
    raise BadModelOutput(f"{output.__name__}: {problem}", [first.content or "", second.content or ""])


def response_schema(output: type[BaseModel]) -> dict[str, object]:
    """The `response_schema` of a ChatRequest for the model class."""
    return {"name": output.__name__, "schema": output.model_json_schema()}


def _read(
    reply: ChatReply, output: type[Output], check: Callable[[Output], str] | None
) -> tuple[Output | None, str]:
    """The answer in a reply; or None, and what is wrong with it."""
    text = reply.content or ""
    match = CODE_FENCE.match(text)
    try:
        answer = output.model_validate_json(match.group(1) if match else text)
    except ValidationError as failure:
        return None, _explain(failure)[:LONGEST_PROBLEM]
    said = answer.model_dump()
    if make_storable(said) != said:
        return None, "a text has a NUL character or half a surrogate pair: leave them out"
    problem = check(answer)[:LONGEST_PROBLEM] if check else ""
    return (None, problem) if problem else (answer, "")


def _repair(request: ChatRequest, reply: ChatReply, problem: str) -> ChatRequest:
    told = (
        # It may quote files, and what the model itself wrote.
        f"That answer can't be used. What is wrong:\n{fenced('problem', problem)}\n"
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
