"""An HTTP server on loopback that speaks the OpenAI protocol, and misbehaves as its script says."""

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-test-0123456789abcdef"


class Handler(BaseHTTPRequestHandler):
    server: "Server"
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.cookies.append(self.headers["Cookie"])
        self.server.headers.append(dict(self.headers))
        self.server.next_behaviour(self.path, body)(self)

    def start(self, status: int, length: int | None, headers: dict[str, str]) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        if length is None:
            self.close_connection = True
        else:
            self.send_header("Content-Length", str(length))
        self.end_headers()

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""


Behaviour = Callable[[Handler], None]


class Server(ThreadingHTTPServer):
    """Plays behaviours one after the other, the last one for ever."""

    daemon_threads = True

    def __init__(self, script: list[Behaviour]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.script = script
        self.bodies: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.cookies: list[str | None] = []
        self.headers: list[dict[str, str]] = []
        # set when the test is over, so that whoever dawdles stops
        self.over = threading.Event()
        self.most_at_once = self.at_once = self.open_connections = 0
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def next_behaviour(self, path: str, body: dict[str, Any]) -> Behaviour:
        with self._lock:
            self.paths.append(path)
            self.bodies.append(body)
            behaviour = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return lambda handler: self._count(behaviour, handler)

    def _count(self, behaviour: Behaviour, handler: Handler) -> None:
        with self._lock:
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            behaviour(handler)
        except (BrokenPipeError, ConnectionResetError):
            handler.close_connection = True
        finally:
            with self._lock:
                self.at_once -= 1

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self.open_connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._lock:
            self.open_connections -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""

    def are_all_closed(self, seconds: float = 2.0) -> bool:
        """Whether clients have closed all their connections, at the latest after so long."""
        steps = int(seconds / 0.01)
        return any(self.open_connections == 0 or self.over.wait(0.01) for _ in range(steps))


@contextmanager
def misbehaving(*script: Behaviour) -> Iterator[Server]:
    with Server(list(script) or [reply_with("hi")]) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


def completion(message: dict[str, Any], finish_reason: str | None = "stop", **others: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m-1",
        "choices": [choice],
        "usage": usage,
        **others,
    }


def answer(body: Any, status: int = 200, **headers: str) -> Behaviour:
    """Any body, as JSON unless it is bytes; a header's underscores become hyphens."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def behave(handler: Handler) -> None:
        handler.start(status, len(data), named)
        handler.wfile.write(data)

    return behave


def reply_with(text: str) -> Behaviour:
    return answer(completion({"content": text}))


def fail(status: int, message: str = "no", **headers: str) -> Behaviour:
    """An error as OpenAI writes it, with our key in it."""
    return answer({"error": {"message": f"{message}: {KEY}", "type": "x", "code": None}}, status, **headers)


def reset(handler: Handler) -> None:
    """Break the connection instead of answering."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()
    handler.close_connection = True


def reset_in_body(handler: Handler) -> None:
    handler.start(200, 500, {})
    handler.wfile.write(b'{"choices": [')
    handler.wfile.flush()
    reset(handler)


def cut_short(handler: Handler) -> None:
    """Promise a long body and hang up politely in the middle."""
    handler.start(200, 500, {})
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def silence(handler: Handler) -> None:
    """Take the request and say nothing until the client hangs up."""
    handler.connection.settimeout(30)
    handler.rfile.read(1)
    handler.close_connection = True


def drip(handler: Handler) -> None:
    """Send a byte now and then, so that no time-out between two bytes ever ends it."""
    handler.start(200, 100_000, {})
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def flood(handler: Handler) -> None:
    """A body without an end."""
    handler.start(200, None, {})
    while not handler.server.over.is_set():
        handler.wfile.write(b" " * 1_000_000)


def after(seconds: float, behaviour: Behaviour) -> Behaviour:
    def behave(handler: Handler) -> None:
        handler.server.over.wait(seconds)
        behaviour(handler)

    return behave


def stream(*chunks: dict[str, Any], done: bool = True, content_type: str = "text/event-stream") -> Behaviour:
    """Server-sent events although nobody asked for them."""
    events = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks] + (["data: [DONE]\n\n"] if done else [])
    return answer("".join(events).encode(), 200, Content_Type=content_type)
