import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from evolution.adapters.openai_chat import OpenAIChatModel, hide_secrets
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, ToolCall, Usage

KEY = "sk-test-0123456789abcdef"
REQUEST = ChatRequest("m", [{"role": "user", "content": "hello"}])


def completion(message: dict[str, Any], finish_reason: str = "stop") -> bytes:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    body = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [choice],
        "usage": usage,
    }
    return json.dumps(body).encode()


OK = completion({"content": "hi"})


class Server(ThreadingHTTPServer):
    """Plays (status, headers, body) one after the other, the last one for ever."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[tuple[int, dict[str, str], bytes]] = []
        self.bodies: list[dict[str, Any]] = []
        self.delay = threading.Event()
        self.seconds = 0.0


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.server.delay.wait(self.server.seconds)
        answers = self.server.answers
        status, headers, body = answers.pop(0) if len(answers) > 1 else answers[0]
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.delay.set()
        running.shutdown()
        thread.join()


def model_at(server: Server, **options: Any) -> OpenAIChatModel:
    return OpenAIChatModel(f"http://127.0.0.1:{server.server_port}/v1", KEY, **options)


def play(server: Server, *answers: bytes | int | tuple[int, dict[str, str], bytes]) -> None:
    for answer in answers:
        if isinstance(answer, bytes):
            server.answers.append((200, {}, answer))
        elif isinstance(answer, int):
            server.answers.append((answer, {}, b'{"error": {"message": "no: %s"}}' % KEY.encode()))
        else:
            server.answers.append(answer)


def ask(server: Server, request: ChatRequest = REQUEST, **options: Any) -> ChatReply:
    return asyncio.run(model_at(server, **options).complete(request))


def refuse(server: Server, **options: Any) -> ChatError:
    with pytest.raises(ChatError) as raised:
        ask(server, **options)
    return raised.value


def test_reply_is_read_with_its_usage(server: Server) -> None:
    play(server, OK)
    reply = ask(server)
    assert (reply.content, reply.usage, reply.model) == ("hi", Usage(7, 3, 2), "m-1")
    assert reply.latency_ms > 0


def test_usage_that_cannot_be_costs_no_reply(server: Server) -> None:
    usage = b'{"prompt_tokens": "many", "completion_tokens": 1e999, "prompt_tokens_details": {"cached_tokens": -1}}'
    play(server, b'{"choices": [{"message": {"content": "x"}}], "usage": ' + usage + b"}")
    assert ask(server).usage == Usage(0, 0, 0)


def test_tool_calls_are_read_also_when_the_arguments_are_an_object(server: Server) -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": {"y": "二"}}},
    ]
    play(server, completion({"content": None, "tool_calls": calls}, "tool_calls"))
    reply = ask(server)
    assert reply.tool_calls == [ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", '{"y": "二"}')]
    assert (reply.content, reply.finish_reason) == (None, "tool_calls")


def test_request_carries_tools_schema_and_parameters_but_no_reserved_one(server: Server) -> None:
    play(server, OK)
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


def test_rate_limit_is_waited_out(server: Server) -> None:
    play(server, (429, {"Retry-After": "0"}, b"{}"), (500, {"Retry-After": "0"}, b"{}"), OK)
    assert ask(server, max_retries=2).content == "hi"
    assert len(server.bodies) == 3


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "refused", False),
        (401, "configuration", False),
        (404, "configuration", False),
        (409, "server", True),
        (422, "refused", False),
        (429, "rate_limit", True),
        (500, "server", True),
        (503, "server", True),
    ],
)
def test_status_has_its_kind_and_no_secret(
    server: Server, status: int, kind: str, *, retryable: bool
) -> None:
    play(server, status)
    error = refuse(server, max_retries=0)
    assert (error.kind, error.retryable) == (kind, retryable)
    assert KEY not in str(error)
    assert "***" in str(error)


@pytest.mark.parametrize(
    "body",
    [
        OK[:-20],
        b"",
        b"<html>busy</html>",
        b"[]",
        b'{"choices": []}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": {"content": null}}]}',
        b"[" * 100_000,
    ],
)
def test_answer_that_is_no_completion_is_a_bad_response(server: Server, body: bytes) -> None:
    play(server, body)
    error = refuse(server)
    assert (error.kind, error.retryable) == ("bad_response", True)


def test_refusal_is_told_apart(server: Server) -> None:
    play(
        server,
        completion({"content": None, "refusal": "I can't"}),
        completion({"content": ""}, "content_filter"),
    )
    assert [refuse(server).kind, refuse(server).kind] == ["refused", "refused"]


def test_slow_answer_is_a_timeout(server: Server) -> None:
    play(server, OK)
    server.seconds = 5
    assert refuse(server, seconds=0.1, max_retries=0).kind == "timeout"


def test_nobody_there_is_a_connection_error(server: Server) -> None:
    model = OpenAIChatModel("http://127.0.0.1:9/v1", KEY, max_retries=0)
    with pytest.raises(ChatError) as raised:
        asyncio.run(model.complete(REQUEST))
    assert (raised.value.kind, raised.value.retryable) == ("connection", True)


def test_entered_model_keeps_its_client_and_can_be_entered_again(server: Server) -> None:
    play(server, OK)
    model = model_at(server)

    async def ask_twice() -> None:
        async with model:
            client = model._client
            await asyncio.gather(model.complete(REQUEST), model.complete(REQUEST))
            assert model._client is client
        assert model._client is None

    asyncio.run(ask_twice())
    asyncio.run(ask_twice())
    assert len(server.bodies) == 4


def test_secrets_are_hidden() -> None:
    assert (
        hide_secrets("Incorrect API key: sk-proj-abc***def, Bearer abcdef123", "")
        == "Incorrect API key: ***, ***"
    )
