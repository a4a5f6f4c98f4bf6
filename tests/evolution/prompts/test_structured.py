"""Structured answers: validated, one repair, then a typed error."""

import json
from dataclasses import dataclass, field

import pytest
from pydantic import BaseModel

from evolution.prompts.structured import LONGEST_PROBLEM, BadModelOutput, Try, ask
from harness_repo.runtime.chat import ChatReply, ChatRequest


class Answer(BaseModel):
    number: int
    note: str = ""


@dataclass
class Scripted:
    """A model that says its lines in order."""

    lines: list[str]
    seen: list[ChatRequest] = field(default_factory=list)

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.seen.append(request)
        return ChatReply(self.lines[len(self.seen) - 1])


REQUEST = ChatRequest("m", [{"role": "user", "content": "a number"}])


async def test_returns_the_validated_answer_and_sends_the_schema() -> None:
    model = Scripted(['{"number": 3}'])
    output, reply = await ask(model, REQUEST, Answer)
    assert output.number == 3
    assert reply.content == '{"number": 3}'
    assert model.seen[0].response_schema == {"name": "Answer", "schema": Answer.model_json_schema()}


async def test_reads_through_a_code_fence() -> None:
    output, _ = await ask(Scripted(['```json\n{"number": 3}\n```']), REQUEST, Answer)
    assert output.number == 3


async def test_tells_the_model_once_what_was_wrong() -> None:
    model = Scripted(['{"number": "three"}', json.dumps({"number": 3})])
    output, _ = await ask(model, REQUEST, Answer)
    assert output.number == 3
    assert "number" in model.seen[1].messages[-1]["content"]
    assert len(REQUEST.messages) == 1


async def test_gives_up_after_one_repair() -> None:
    model = Scripted(["no", "still no", '{"number": 3}'])
    with pytest.raises(BadModelOutput) as caught:
        await ask(model, REQUEST, Answer)
    assert caught.value.replies == ["no", "still no"]


@pytest.mark.parametrize("text", ["a\\u0000b", "a\\ud800b"])
async def test_a_text_that_nothing_can_store_is_a_fault(text: str) -> None:
    model = Scripted([f'{{"number": 3, "note": "{text}"}}', '{"number": 4}'])
    output, _ = await ask(model, REQUEST, Answer)
    assert output.number == 4


async def test_what_is_wrong_is_told_in_part_where_it_is_endless() -> None:
    tries: list[Try] = []
    with pytest.raises(BadModelOutput) as caught:
        await ask(Scripted(['{"number": 3}'] * 2), REQUEST, Answer, check=lambda _: "x" * 99_999, tries=tries)
    assert len(tries[0].problem) == LONGEST_PROBLEM
    assert len(str(caught.value)) < LONGEST_PROBLEM + 100
