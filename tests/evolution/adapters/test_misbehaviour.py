"""What becomes of a call when the server misbehaves: a reply, or an error that says what to do; never a hang."""

import asyncio
import gzip
import json
import socket
import time
import tracemalloc
from typing import Any

import pytest

from evolution.adapters import routing
from evolution.adapters.endpoints import Endpoint
from evolution.adapters.health import Health
from evolution.adapters.openai_chat import OpenAIChatModel
from evolution.adapters.routing import Route, RoutedChatModel
from evolution.adapters.transport import LONGEST_ANSWER
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, ToolCall
from tests.evolution.adapters.misbehaving import (
    KEY,
    Behaviour,
    Server,
    answer,
    completion,
    cut_short,
    drip,
    fail,
    flood,
    misbehaving,
    reply_with,
    reset,
    reset_in_body,
    silence,
    stream,
)

REQUEST = ChatRequest("m", [{"role": "user", "content": "hello"}])
SECONDS = 0.6
OK = json.dumps(completion({"content": "hi"})).encode()


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "FIRST_BACK_OFF", 0.01)


def call(server: Server, max_retries: int = 1) -> ChatReply:
    endpoint = Endpoint(server.url, KEY, seconds=SECONDS, connect_seconds=0.5)
    model = RoutedChatModel([Route(OpenAIChatModel(endpoint), Health("here"))], max_retries=max_retries)

    async def within_time() -> ChatReply:
        async with asyncio.timeout(10), model:
            return await model.complete(REQUEST)

    return asyncio.run(within_time())


# behaviour, kind, whether it may work later, calls at the server with one retry
FAILURES: dict[str, tuple[Behaviour, str, bool, int]] = {
    "429 without a time": (fail(429), "rate_limit", True, 2),
    "429 with a time": (fail(429, Retry_After="0"), "rate_limit", True, 2),
    "429 for an hour": (fail(429, Retry_After="3600"), "rate_limit", True, 1),
    "429 without money": (
        answer({"error": {"message": "pay", "code": "insufficient_quota"}}, 429),
        "configuration",
        False,
        1,
    ),
    "500": (fail(500), "server", True, 2),
    "502 in HTML": (answer(b"<html>bad gateway</html>", 502, Content_Type="text/html"), "server", True, 2),
    "503": (fail(503, Retry_After="0"), "server", True, 2),
    "401": (fail(401), "configuration", False, 1),
    "404": (fail(404), "configuration", False, 1),
    "400": (fail(400), "refused", False, 1),
    "413": (fail(413), "refused", False, 1),
    "reset before the answer": (reset, "connection", True, 2),
    "reset in the body": (reset_in_body, "connection", True, 2),
    "body cut short": (cut_short, "connection", True, 2),
    "no headers": (silence, "timeout", True, 2),
    "a byte now and then": (drip, "timeout", True, 2),
    "a body without end": (flood, "bad_response", True, 2),
    "packed body that unfolds": (
        answer(gzip.compress(b" " * 10 * LONGEST_ANSWER), 200, Content_Encoding="gzip"),
        "bad_response",
        True,
        2,
    ),
    "twice packed body": (
        answer(gzip.compress(gzip.compress(OK)), 200, Content_Encoding="gzip, gzip"),
        "bad_response",
        True,
        2,
    ),
    "not packed as it says": (answer(OK, 200, Content_Encoding="gzip"), "bad_response", True, 2),
    "truncated JSON": (answer(OK[:-20]), "bad_response", True, 2),
    "nothing": (answer(b""), "bad_response", True, 2),
    "HTML with 200": (answer(b"<html>busy</html>", 200, Content_Type="text/html"), "bad_response", True, 2),
    "a list": (answer([]), "bad_response", True, 2),
    "no choices": (answer({"choices": []}), "bad_response", True, 2),
    "choices null": (answer({"choices": None}), "bad_response", True, 2),
    "choice without message": (answer({"choices": [{}]}), "bad_response", True, 2),
    "neither text nor calls": (answer(completion({"content": None})), "bad_response", True, 2),
    "content that is no text": (answer(completion({"content": 7})), "bad_response", True, 2),
    "bottomless nesting": (answer(b"[" * 100_000), "bad_response", True, 2),
    "invalid UTF-8": (answer(OK.replace(b"hi", b"h\xff")), "bad_response", True, 2),
    "error with 200": (answer({"error": {"message": "busy", "code": 503}}), "server", True, 2),
    "error text with 200": (answer({"error": "busy"}), "bad_response", True, 2),
    "redirect to another host": (
        answer(b"", 307, Location="http://127.0.0.2:9/v1/chat/completions"),
        "configuration",
        False,
        1,
    ),
    "refusal": (answer(completion({"content": None, "refusal": "I can't"})), "refused", False, 1),
    "content filter": (answer(completion({"content": ""}, "content_filter")), "refused", False, 1),
    "stream that breaks off": (
        stream({"choices": [{"delta": {"content": "h"}}]}, done=False),
        "bad_response",
        True,
        2,
    ),
}


@pytest.mark.parametrize("name", FAILURES)
def test_misbehaviour_is_an_error_of_its_kind(name: str) -> None:
    behaviour, kind, retryable, calls = FAILURES[name]
    with misbehaving(behaviour) as server:
        started = time.monotonic()
        with pytest.raises(ChatError) as raised:
            call(server)
        assert time.monotonic() - started < 2 * SECONDS + 2
        assert (raised.value.kind, raised.value.retryable) == (kind, retryable)
        assert KEY not in str(raised.value)
        assert len(server.bodies) == calls
        assert server.are_all_closed()


@pytest.mark.parametrize(
    "name", [name for name, (*_, retryable, calls) in FAILURES.items() if retryable and calls == 2]
)
def test_misbehaviour_that_passes_costs_no_reply(name: str) -> None:
    with misbehaving(FAILURES[name][0], reply_with("hi")) as server:
        assert call(server).content == "hi"
        assert len(server.bodies) == 2
        assert server.are_all_closed()


FUNCTION = {"name": "f", "arguments": {"y": "二"}}
ODD_REPLIES: dict[str, tuple[Behaviour, ChatReply]] = {
    "JSON of the wrong type": (answer(OK, 200, Content_Type="text/plain"), ChatReply("hi")),
    "cut by its length": (answer(completion({"content": "h"}, "length")), ChatReply("h", [], "length")),
    "cut before it began": (answer(completion({"content": None}, "length")), ChatReply("", [], "length")),
    "no finish reason": (answer(completion({"content": "hi"}, None)), ChatReply("hi")),
    "half an emoji": (answer(OK.replace(b"hi", b"h\\ud83d")), ChatReply("h\ufffd")),
    "BOM": (answer(b"\xef\xbb\xbf" + OK), ChatReply("hi")),
    "arguments as an object, no id": (
        answer(completion({"content": None, "tool_calls": [{"function": FUNCTION}]}, "tool_calls")),
        ChatReply(None, [ToolCall("", "f", '{"y": "二"}')], "tool_calls"),
    ),
    "no arguments": (
        answer(completion({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": None}}]})),
        ChatReply(None, [ToolCall("a", "f", "{}")]),
    ),
    "parts": (
        answer(completion({"content": [{"type": "text", "text": "h"}, {"type": "text", "text": "i"}]})),
        ChatReply("hi"),
    ),
    "stream": (
        stream(
            {"model": "m-1", "choices": [{"delta": {"role": "assistant", "content": "h"}}]},
            {"choices": [{"delta": {"content": "i"}, "finish_reason": "stop"}]},
        ),
        ChatReply("hi"),
    ),
}


@pytest.mark.parametrize("name", ODD_REPLIES)
def test_odd_reply_is_read(name: str) -> None:
    behaviour, expected = ODD_REPLIES[name]
    with misbehaving(behaviour) as server:
        reply = call(server)
        assert (reply.content, reply.tool_calls, reply.finish_reason) == (
            expected.content,
            expected.tool_calls,
            expected.finish_reason,
        )
        assert len(server.bodies) == 1
        assert server.are_all_closed()


@pytest.mark.parametrize("behaviour", [silence, drip])
def test_cancelled_call_closes_its_connection(behaviour: Behaviour) -> None:
    async def cancel_it(server: Server) -> None:
        model = OpenAIChatModel(Endpoint(server.url, KEY))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await model.complete(REQUEST)

    with misbehaving(behaviour) as server:
        asyncio.run(cancel_it(server))
        assert server.are_all_closed()


def test_server_that_is_never_reached_ends_within_the_time_for_that() -> None:
    # A queue of connections that nobody accepts: once it is full, the next one gets no answer at all.
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listening:
        address = listening.getsockname()
        queue = [socket.socket() for _ in range(4)]
        for one in queue:
            one.setblocking(False)
            one.connect_ex(address)
        started = time.monotonic()
        model = OpenAIChatModel(Endpoint(f"http://127.0.0.1:{address[1]}/v1", connect_seconds=0.2))
        with pytest.raises(ChatError) as raised:
            asyncio.run(model.complete(REQUEST))
        for one in queue:
            one.close()
    assert (raised.value.kind, raised.value.retryable) == ("timeout", True)
    assert time.monotonic() - started < 5


def test_silence_ends_within_the_time_for_that_also_when_the_call_may_take_longer() -> None:
    with misbehaving(silence) as server:
        started = time.monotonic()
        with pytest.raises(ChatError) as raised:
            asyncio.run(OpenAIChatModel(Endpoint(server.url, read_seconds=0.2)).complete(REQUEST))
        assert (raised.value.kind, server.are_all_closed()) == ("timeout", True)
    assert time.monotonic() - started < 5


def test_nobody_there_is_a_connection_error() -> None:
    with misbehaving() as server:
        gone = server.url
    model = OpenAIChatModel(Endpoint(gone, KEY, connect_seconds=0.5))
    with pytest.raises(ChatError) as raised:
        asyncio.run(model.complete(REQUEST))
    assert (raised.value.kind, raised.value.retryable) == ("connection", True)


def test_message_that_cannot_be_sent_is_refused() -> None:
    broken: list[dict[str, Any]] = [{"role": "user", "content": "half an emoji \ud83d"}]
    with misbehaving() as server:
        with pytest.raises(ChatError) as raised:
            asyncio.run(OpenAIChatModel(Endpoint(server.url, KEY)).complete(ChatRequest("m", broken)))
        assert (raised.value.kind, raised.value.retryable, server.bodies) == ("refused", False, [])


def test_body_packed_once_is_read_and_no_more_of_it_unpacked_than_may_be() -> None:
    with misbehaving(answer(gzip.compress(OK), 200, Content_Encoding="gzip")) as server:
        assert call(server).content == "hi"
    bomb = gzip.compress(b" " * 30 * LONGEST_ANSWER)
    with misbehaving(answer(bomb, 200, Content_Encoding="gzip")) as server:
        tracemalloc.start()
        try:
            with pytest.raises(ChatError, match=f"longer than {LONGEST_ANSWER} bytes"):
                call(server)
            # Of 240 MB, with all that a client needs besides.
            assert tracemalloc.get_traced_memory()[1] < 5 * LONGEST_ANSWER
        finally:
            tracemalloc.stop()


def test_no_cookie_is_carried_from_call_to_call() -> None:
    with misbehaving(answer(OK, 200, Set_Cookie="session=1")) as server:
        endpoint = Endpoint(server.url)

        async def ask_twice() -> None:
            async with OpenAIChatModel(endpoint) as model:
                for _ in range(2):
                    await model.complete(REQUEST)

        asyncio.run(ask_twice())
        assert server.cookies == [None, None]
