import asyncio
import json
from dataclasses import replace

import pytest

from evolution.adapters.answer_format import REMEMBERED, AnswerFormat, FormatMemory
from evolution.adapters.endpoints import Endpoint
from evolution.adapters.openai_chat import OpenAIChatModel
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest
from tests.evolution.adapters.misbehaving import (
    Behaviour,
    Handler,
    Server,
    fail,
    misbehaving,
    reply_with,
)

SCHEMA = {"name": "scores", "schema": {"type": "object", "required": ["accuracy"]}}
REQUEST = ChatRequest(
    "m", [{"role": "system", "content": "judge"}, {"role": "user", "content": "x"}], response_schema=SCHEMA
)


def takes(*types: str | None, message: str = "response_format is not supported") -> Behaviour:
    """A server that refuses every response_format but these."""

    def behave(handler: Handler) -> None:
        server = handler.server
        wanted = (server.bodies[-1].get("response_format") or {}).get("type")
        (reply_with("{}") if wanted in types else fail(400, message))(handler)

    return behave


def asked(server: Server) -> list[str | None]:
    return [(body.get("response_format") or {}).get("type") for body in server.bodies]


def ask(
    server: Server, request: ChatRequest = REQUEST, memory: FormatMemory | None = None, times: int = 1
) -> list[ChatReply]:
    model = OpenAIChatModel(Endpoint(server.url), memory)

    async def ask_them() -> list[ChatReply]:
        return [await model.complete(request) for _ in range(times)]

    return asyncio.run(ask_them())


@pytest.mark.parametrize(
    ("types", "tried"),
    [
        (["json_schema"], ["json_schema"]),
        (["json_object"], ["json_schema", "json_object"]),
        ([None], ["json_schema", "json_object", None]),
    ],
)
def test_request_steps_down_to_what_the_server_takes_and_stays_there(
    types: list[str | None], tried: list[str | None]
) -> None:
    with misbehaving(takes(*types)) as server:
        assert [reply.content for reply in ask(server, times=3)] == ["{}"] * 3
        assert asked(server) == [*tried, tried[-1], tried[-1]]


def test_schema_is_in_the_prompt_where_it_is_not_in_the_request() -> None:
    before = json.dumps(REQUEST.messages)
    with misbehaving(takes("json_object")) as server:
        ask(server)
        system, user = server.bodies[-1]["messages"]
    assert system["content"].startswith("judge\n\nAnswer with one JSON object only")
    assert json.dumps(SCHEMA["schema"]) in system["content"]
    assert user == REQUEST.messages[1]
    assert json.dumps(REQUEST.messages) == before


def test_prompt_without_system_message_gets_one() -> None:
    request = ChatRequest("m", [{"role": "user", "content": "x"}], response_schema=SCHEMA)
    with misbehaving(takes(None)) as server:
        ask(server, request)
        assert [message["role"] for message in server.bodies[-1]["messages"]] == ["system", "user"]


def test_format_is_remembered_for_a_model_and_schema_by_all_who_share_the_memory() -> None:
    memory = FormatMemory()
    other = ChatRequest("other", REQUEST.messages, response_schema=SCHEMA)
    with misbehaving(takes("json_object")) as server:
        ask(server, memory=memory)
        ask(server, memory=memory)
        ask(server, other, memory=memory)
        assert asked(server) == [
            "json_schema", "json_object", "json_object", "json_schema", "json_object",
        ]  # fmt: skip


def test_refusal_for_another_reason_is_told_at_once() -> None:
    with misbehaving(fail(400, "This model's maximum context length is 8192 tokens")) as server:
        with pytest.raises(ChatError, match="context length"):
            ask(server)
        assert asked(server) == ["json_schema"]


def test_server_that_takes_no_format_tells_its_first_refusal_and_nothing_is_remembered() -> None:
    memory = FormatMemory()
    with misbehaving(fail(400, "first"), fail(400, "second"), fail(400, "third"), reply_with("{}")) as server:
        with pytest.raises(ChatError, match="first"):
            ask(server, memory=memory)
        ask(server, memory=memory)
        assert asked(server) == ["json_schema", "json_object", None, "json_schema"]


def test_failure_on_the_way_down_keeps_its_kind() -> None:
    with misbehaving(fail(400, "response_format"), fail(503)) as server, pytest.raises(ChatError) as raised:
        ask(server)
    assert (raised.value.kind, raised.value.retryable) == ("server", True)


def stray(handler: Handler) -> None:
    """A 400 that says nothing of the format."""
    fail(400, "failed to generate a valid reply")(handler)


def test_one_stray_refusal_does_not_change_the_format() -> None:
    memory = FormatMemory()
    with misbehaving(stray, reply_with("{}"), reply_with("{}")) as server:
        ask(server, memory=memory, times=2)
        assert asked(server) == ["json_schema", "json_object", "json_schema"]
    # One more after a success is the first again.
    with misbehaving(stray, reply_with("{}"), reply_with("{}")) as server:
        ask(server, memory=memory, times=2)
        assert asked(server) == ["json_schema", "json_object", "json_schema"]


def test_two_refusals_in_a_row_change_the_format_without_a_word_about_it() -> None:
    with misbehaving(takes("json_object", message="no")) as server:
        ask(server, times=3)
        assert asked(server) == ["json_schema", "json_object", "json_schema", "json_object", "json_object"]


def test_what_was_learnt_is_forgotten_after_a_while_and_is_of_one_schema() -> None:
    now = [0.0]
    memory = FormatMemory(lambda: now[0])
    other = replace(REQUEST, response_schema={"name": "scores", "schema": {"type": "object"}})
    with misbehaving(takes("json_object")) as server:
        ask(server, memory=memory)
        assert next(memory.formats(other)) == AnswerFormat.SCHEMA
        assert next(memory.formats(REQUEST)) == AnswerFormat.ANY_OBJECT
        now[0] = REMEMBERED + 1
        assert next(memory.formats(REQUEST)) == AnswerFormat.SCHEMA
