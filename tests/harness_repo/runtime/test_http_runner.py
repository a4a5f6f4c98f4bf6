"""A real server on loopback that misbehaves on demand: the path of the URL says how."""

import asyncio
import gzip
import json
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import pytest

from harness_repo.runtime import http_runner
from harness_repo.runtime.foreign import MOST_BYTES
from harness_repo.runtime.http_runner import HttpRunner, HttpSettings
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import Trajectory

CASE = RunCase("k1", {"danmaku": [{"user": "Ann", "text": "多少钱？"}]}, commit="c" * 40, repeat=1, seed=7)
REPLY = b'{"reply": "r"}'


@dataclass
class Server:
    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    ports: set[int] = field(default_factory=set)


@pytest.fixture
def server() -> Iterator[Server]:
    seen = Server()
    service = Service(seen)
    seen.url = f"http://127.0.0.1:{service.server_port}"
    thread = threading.Thread(target=service.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield seen
    service.shutdown()
    service.server_close()
    thread.join()


class Service(ThreadingHTTPServer):
    request_queue_size = 64

    def __init__(self, seen: Server) -> None:
        super().__init__(("127.0.0.1", 0), Misbehaving)
        self.seen = seen

    def handle_error(self, *_arguments: object) -> None:
        """The client may go whenever it wants."""


class Misbehaving(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: "Service"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        seen = self.server.seen
        seen.requests.append({"path": self.path, "headers": dict(self.headers), "case": json.loads(body)})
        seen.ports.add(self.client_address[1])
        getattr(self, self.path.strip("/"))()

    def answer(self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def good(self) -> None:
        self.answer(REPLY)

    def echo(self) -> None:
        self.answer(json.dumps({"reply": json.dumps(self.server.seen.requests[-1]["case"])}).encode())

    def whole(self) -> None:
        call = {"name": "price", "arguments": {"id": 1}, "result": 9}
        made = {
            "format": "trajectory/1",
            "status": "ok",
            "reply": "r",
            "tool_calls": [call],
            "latency_ms": 3,
        }
        self.answer(json.dumps(made).encode())

    def down(self) -> None:
        self.answer(b"<h1>maintenance</h1>\n" * 100, 503)

    def denied(self) -> None:
        self.answer(self.headers.get("Authorization", "").encode(), 403)

    def leak(self) -> None:
        """What was sent, in every place of a good answer."""
        secret = self.headers["Authorization"].split()[-1]
        call = {"id": secret, "function": {"name": secret, "arguments": json.dumps({"q": secret})}}
        made = {
            "reply": f"it is {secret}",
            "messages": [
                {"role": "user", "content": quote(secret, safe="")},
                {"role": "assistant", "content": [{"type": "text", "text": secret}], "tool_calls": [call]},
            ],
            "tool_calls": [{"name": "t", "arguments": {secret: 1}, "result": [secret], "error": secret}],
            "hooks": [{"hook": secret, "outcome": "pass", "message": secret}],
            "calls": [{"model": secret, "reasoning": secret}],
            "error": secret,
        }
        self.answer(json.dumps(made).encode())

    def leak_401(self) -> None:
        self.answer(b"x" * 283 + self.headers["Authorization"].split()[-1].encode(), 401)

    def leak_location(self) -> None:
        location = "http://127.0.0.1:9/?token=" + quote(self.headers["Authorization"].split()[-1], safe="")
        self.answer(b"", 302, {"Location": location})

    def leak_wrong(self) -> None:
        self.answer(json.dumps({"reply": "r", "status": self.headers["Authorization"].split()[-1]}).encode())

    def cookie(self) -> None:
        self.answer(REPLY, headers={"Set-Cookie": f"session={self.server.seen.requests[-1]['case']['key']}"})

    def packed(self) -> None:
        self.answer(gzip.compress(REPLY), headers={"Content-Encoding": "gzip"})

    def bomb(self) -> None:
        self.answer(
            gzip.compress(b'{"reply": "' + b"x" * 60_000_000 + b'"}'), headers={"Content-Encoding": "gzip"}
        )

    def packed_twice(self) -> None:
        self.answer(gzip.compress(gzip.compress(REPLY)), headers={"Content-Encoding": "gzip, gzip"})

    def moved(self) -> None:
        self.answer(b"", 307, {"Location": f"{self.server.seen.url}/good"})

    def html(self) -> None:
        self.answer(b"<html>ok</html>", 200)

    def broken(self) -> None:
        self.answer(b'{"reply": "r"')

    def nothing(self) -> None:
        self.answer(b"", 204)

    def wrong(self) -> None:
        self.answer(b'{"format": "trajectory/2", "reply": "r"}')

    def huge(self) -> None:
        self.answer(b'{"reply": "' + b"x" * 300_000 + b'"}')

    def cut(self) -> None:
        self.answer(REPLY, headers={"Content-Length": "1000"})
        self.close_connection = True

    def reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.close_connection = True

    def slow(self) -> None:
        time.sleep(1.0)
        self.answer(REPLY)

    def drip(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        for _ in range(10):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.1)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Silence."""


async def ask(server: Server, path: str, **settings: Any) -> Trajectory:
    return await HttpRunner(HttpSettings(f"{server.url}/{path}", **settings)).run(CASE)


async def test_case_and_commit_are_posted_and_a_reply_is_enough(server: Server) -> None:
    got = await ask(server, "echo")
    assert (got.status, got.error, got.runner) == ("ok", None, {"kind": "http", "status": 200})
    assert json.loads(got.reply or "") == CASE.to_dict()
    assert server.requests[0]["case"]["commit"] == CASE.commit


async def test_trajectory_is_taken_with_its_calls_and_times(server: Server) -> None:
    got = await ask(server, "whole")
    assert (got.reply, got.latency_ms) == ("r", 3)
    assert got.evidence() == [{"tool": "price", "arguments": {"id": 1}, "result": 9}]
    assert (await ask(server, "good")).latency_ms > 0


@pytest.mark.parametrize(
    ("path", "status", "error"),
    [
        ("down", 503, "HTTP 503: <h1>maintenance</h1> <h1>"),
        ("denied", 403, "HTTP 403"),
        ("moved", 307, "a redirect to "),
        ("html", 200, "the answer is no trajectory: Expecting value"),
        ("broken", 200, "the answer is no trajectory: Expecting ',' delimiter"),
        ("nothing", 204, "the answer is no trajectory: empty"),
        ("wrong", 200, "the answer is no trajectory: "),
        ("cut", None, ""),
        ("reset", None, ""),
    ],
)
async def test_what_is_no_answer_is_an_error_of_the_runner(
    server: Server, path: str, status: int | None, error: str
) -> None:
    got = await ask(server, path)
    assert (got.status, got.reply) == ("runner_error", None)
    assert got.error
    assert error in got.error
    assert len(got.error) < 500
    assert len(server.requests) == 1
    if status is not None:
        assert got.runner == {"kind": "http", "status": status}


@pytest.mark.parametrize("path", ["slow", "drip"])
async def test_time_out_is_of_the_whole_run(server: Server, path: str) -> None:
    began = time.monotonic()
    got = await ask(server, path, seconds=0.3)
    assert time.monotonic() - began < 0.9
    assert (got.status, got.error) == ("time_limit", "not done after 0.3 seconds")


async def test_answer_that_is_too_large_is_not_read_to_its_end(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_runner, "MOST_BYTES", 100_000)
    got = await ask(server, "huge")
    assert (got.status, got.error) == ("runner_error", "the answer has more than 100000 bytes")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/", "http://name.invalid/", "http://[::1", "nonsense"])
async def test_server_that_cannot_be_reached(url: str) -> None:
    got = await HttpRunner(HttpSettings(url, seconds=5)).run(CASE)
    assert got.status == "runner_error"
    assert got.error


async def test_secret_header_is_sent_and_stands_nowhere(server: Server) -> None:
    got = await ask(server, "denied", headers={"Authorization": "Bearer s3cret"})
    assert server.requests[0]["headers"]["Authorization"] == "Bearer s3cret"
    assert got.error == "HTTP 403: ***"
    assert "s3cret" not in json.dumps(got.to_dict())
    assert "s3cret" not in repr(HttpSettings("u", headers={"Authorization": "Bearer s3cret"}))


@pytest.mark.parametrize("path", ["leak", "leak_401", "leak_location", "leak_wrong"])
async def test_secret_stands_nowhere_wherever_a_server_puts_it(server: Server, path: str) -> None:
    secret = "TOP/secret+value=0123456789"
    got = await ask(server, path, headers={"Authorization": f"Bearer {secret}"})
    said = json.dumps(got.to_dict())
    assert "***" in said
    assert not any(part in said for part in ("secret", "TOP", "01234"))
    assert got.status == ("ok" if path == "leak" else "runner_error")


async def test_only_named_secrets_are_hidden_where_they_are_named(server: Server) -> None:
    headers = {"Authorization": "Bearer s3cret-s3cret", "X-Room": "livestream"}
    got = await ask(server, "denied", headers=headers, secrets=["s3cret-s3cret"])
    assert got.error == "HTTP 403: Bearer ***"


async def test_cookies_are_not_carried_from_case_to_case(server: Server) -> None:
    async with HttpRunner(HttpSettings(f"{server.url}/cookie")) as runner:
        for _ in range(2):
            await runner.run(CASE)
    assert [request["headers"].get("Cookie") for request in server.requests] == [None, None]


async def test_packed_answer_is_unpacked_once_and_no_further_than_it_may_be(server: Server) -> None:
    assert (await ask(server, "packed")).reply == "r"
    got = await ask(server, "packed_twice")
    assert (got.status, got.error) == (
        "runner_error",
        "the answer is packed as 'gzip, gzip'; send it as it is, or packed by gzip",
    )
    tracemalloc.start()
    try:
        got = await ask(server, "bomb")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert got.error == f"the answer has more than {MOST_BYTES} bytes"
    # The server of the test has 60 MB of it, in one piece or two.
    assert peak < 130_000_000


async def test_connections_are_kept_for_many_runs(server: Server) -> None:
    async with HttpRunner(HttpSettings(f"{server.url}/good")) as runner:
        for _ in range(3):
            assert (await runner.run(CASE)).reply == "r"
    assert len(server.ports) == 1


async def test_many_runs_at_once(server: Server) -> None:
    async with HttpRunner(HttpSettings(f"{server.url}/slow", seconds=10)) as runner:
        began = time.monotonic()
        got = await asyncio.gather(*(runner.run(CASE) for _ in range(20)))
    assert [one.reply for one in got] == ["r"] * 20
    assert time.monotonic() - began < 5


async def test_cancelled_run_is_cancelled(server: Server) -> None:
    task = asyncio.create_task(ask(server, "slow"))
    await asyncio.sleep(0.1)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
