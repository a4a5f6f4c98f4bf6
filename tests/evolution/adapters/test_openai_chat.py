import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from evolution.adapters.endpoints import Endpoint
from evolution.adapters.openai_chat import OpenAIChatModel, hide_secrets
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, Usage
from tests.evolution.adapters.misbehaving import (
    KEY,
    Server,
    answer,
    completion,
    fail,
    misbehaving,
    reply_with,
)

REQUEST = ChatRequest("m", [{"role": "user", "content": "hello"}])


@pytest.fixture
def server() -> Iterator[Server]:
    with misbehaving() as running:
        yield running


def model_at(server: Server) -> OpenAIChatModel:
    return OpenAIChatModel(Endpoint(server.url, KEY))


def ask(server: Server, request: ChatRequest = REQUEST) -> ChatReply:
    return asyncio.run(model_at(server).complete(request))


def refuse(server: Server) -> ChatError:
    with pytest.raises(ChatError) as raised:
        ask(server)
    return raised.value


def test_reply_is_read_with_its_usage_and_build(server: Server) -> None:
    server.script = [answer(completion({"content": "hi"}, system_fingerprint="fp_1"))]
    reply = ask(server)
    assert (reply.content, reply.usage, reply.model) == ("hi", Usage(7, 3, 2), "m-1")
    assert reply.fingerprint == "fp_1"
    assert reply.latency_ms > 0
    assert server.paths == ["/v1/chat/completions"]


def test_request_carries_tools_schema_and_parameters_but_no_reserved_one(server: Server) -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    schema = {"name": "answer", "schema": {"type": "object"}}
    parameters = {"temperature": 0, "seed": 3, "model": "other", "stream": True}
    ask(server, ChatRequest("m", REQUEST.messages, [tool], schema, parameters))
    assert server.bodies == [
        {
            "model": "m",
            "messages": REQUEST.messages,
            "tools": [tool],
            "temperature": 0,
            "seed": 3,
            "response_format": {"type": "json_schema", "json_schema": schema},
        }
    ]


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (308, "configuration", False),
        (400, "refused", False),
        (401, "configuration", False),
        (402, "configuration", False),
        (404, "configuration", False),
        (408, "server", True),
        (409, "server", True),
        (422, "refused", False),
        (429, "rate_limit", True),
        (500, "server", True),
        (529, "server", True),
    ],
)
def test_status_has_its_kind_and_no_secret(
    server: Server, status: int, kind: str, *, retryable: bool
) -> None:
    server.script = [fail(status)]
    error = refuse(server)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert KEY not in str(error)
    assert "***" in str(error)
    # Whether and where it is tried again is for others to say.
    assert len(server.bodies) == 1


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"Retry_After": "7"}, 7),
        ({"Retry_After": "0.5"}, 0.5),
        ({"Retry_After": "9", "retry_after_ms": "1500"}, 1.5),
        ({"Retry_After": "Fri, 31 Dec 1999 23:59:59 GMT"}, 0),
        ({"Retry_After": "soon"}, None),
        ({"Retry_After": "-3"}, None),
        ({"Retry_After": "nan"}, None),
        ({"Retry_After": "3600"}, 3600),
        # The time of day, and other mistakes.
        ({"Retry_After": "1700000000"}, None),
        ({"Retry_After": "1e300"}, None),
        ({"Retry_After": "Wed, 21 Oct 2099 07:28:00 GMT"}, None),
    ],
)
def test_time_to_wait_is_read(server: Server, headers: dict[str, str], seconds: float | None) -> None:
    server.script = [fail(429, **headers)]
    waits = refuse(server).retry_after
    assert waits == (None if seconds is None else pytest.approx(seconds))


def test_time_to_wait_may_be_a_moment(server: Server) -> None:
    moment = datetime.now(UTC) + timedelta(minutes=50)
    server.script = [fail(429, Retry_After=format_datetime(moment, usegmt=True))]
    assert refuse(server).retry_after == pytest.approx(3000, abs=60)


def test_redirect_is_told_and_not_followed(server: Server) -> None:
    with misbehaving() as other:
        server.script = [answer(b"", 307, Location=f"{other.url}/chat/completions")]
        assert f"redirects to '{other.url}" in str(refuse(server))
        assert other.bodies == []


def test_entered_model_keeps_its_connection_and_can_be_entered_again(server: Server) -> None:
    model = model_at(server)

    async def ask_twice() -> int:
        async with model:
            await model.complete(REQUEST)
            await model.complete(REQUEST)
            return server.open_connections

    assert asyncio.run(ask_twice()) == 1
    assert server.are_all_closed()
    assert asyncio.run(ask_twice()) == 1
    assert len(server.bodies) == 4


def seed_sent(server: Server, request: ChatRequest, endpoint: Endpoint | None = None) -> object:
    asyncio.run(OpenAIChatModel(endpoint or Endpoint(server.url)).complete(request))
    return server.bodies[-1].get("seed")


def test_each_repeat_has_a_seed_of_its_own_and_always_the_same(server: Server) -> None:
    repeats = [replace(REQUEST, repeat=repeat) for repeat in (0, 1, 2, 1)]
    seeds = [seed_sent(server, request) for request in repeats]
    assert len(set(seeds)) == 3
    assert seeds[1] == seeds[3]
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in seeds)


def test_seed_of_the_harness_goes_first_and_an_endpoint_may_be_sent_none(server: Server) -> None:
    assert seed_sent(server, replace(REQUEST, parameters={"seed": 5}, repeat=1)) == 5
    assert seed_sent(server, REQUEST, Endpoint(server.url, seed=False)) is None


def test_server_that_takes_no_seed_is_asked_without_from_then_on(server: Server) -> None:
    server.script = [fail(422, "seed: extra fields not permitted"), reply_with("hi")]
    model = model_at(server)
    for _ in range(2):
        assert asyncio.run(model.complete(REQUEST)).content == "hi"
    assert ["seed" in body for body in server.bodies] == [True, False, False]


def test_what_the_official_client_sends_is_sent(server: Server) -> None:
    ask(server)
    sent = server.headers[0]
    assert (sent["Authorization"], sent["Accept-Encoding"]) == (f"Bearer {KEY}", "identity")
    assert sent["User-Agent"].startswith("AsyncOpenAI/Python")
    assert sent["Content-Type"] == "application/json"


def test_user_in_the_address_is_told_as_basic_authorization_and_in_no_error(server: Server) -> None:
    url = server.url.replace("http://", "http://me:secret-word@")
    server.script = [answer({"error": {"message": "no"}}, 401)]
    with pytest.raises(ChatError) as raised:
        asyncio.run(OpenAIChatModel(Endpoint(url, KEY)).complete(REQUEST))
    assert server.headers[0]["Authorization"] == "Basic bWU6c2VjcmV0LXdvcmQ="
    assert "secret-word" not in str(raised.value)


def test_proxy_of_the_environment_is_used_but_for_those_it_leaves_out(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url.removesuffix("/v1"))
    monkeypatch.setenv("no_proxy", "")
    elsewhere = OpenAIChatModel(Endpoint("http://models.example/v1", KEY))
    assert asyncio.run(elsewhere.complete(REQUEST)).content == "hi"
    assert server.paths == ["http://models.example/v1/chat/completions"]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert ask(server).content == "hi"
    assert server.paths[1] == "/v1/chat/completions"


@pytest.mark.parametrize("value", [float("nan"), {1, 2}])
def test_parameter_that_json_has_no_word_for_is_refused(server: Server, value: object) -> None:
    with pytest.raises(ChatError) as raised:
        ask(server, replace(REQUEST, parameters={"temperature": value}))
    assert (raised.value.kind, server.bodies) == ("refused", [])


def test_secrets_are_hidden() -> None:
    assert (
        hide_secrets("Incorrect API key: sk-proj-abc***def, Bearer abcdef123", "")
        == "Incorrect API key: ***, ***"
    )
