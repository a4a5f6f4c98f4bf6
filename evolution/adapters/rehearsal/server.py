"""An HTTP face for the rehearsal model, in the OpenAI protocol, so that the real client path can be tried.

`python -m evolution.adapters.rehearsal.server [port]` serves it on loopback. It is for trying things out, not for a
network: no authentication, no streaming.
"""

import asyncio
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evolution.adapters.rehearsal.model import ROLES, RehearsalModel
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest

LOOPBACK = "127.0.0.1"
# A request larger than this is refused unread.
MAX_BODY = 8_000_000


class BadRequest(ValueError):
    """A body that is no chat-completions request; the message says why."""


def serve(host: str = LOOPBACK, port: int = 0) -> ThreadingHTTPServer:
    """A bound server, port 0 for a free one; the caller runs `serve_forever` and `server_close`."""
    return ThreadingHTTPServer((host, port), _Handler)


@contextmanager
def running(host: str = LOOPBACK, port: int = 0) -> Iterator[str]:
    """Serve in a thread for the length of the block; gives the base URL, such as http://127.0.0.1:8123/v1."""
    server = serve(host, port)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://{host}:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def read_request(body: bytes) -> ChatRequest:
    """The ChatRequest of a chat-completions body, or BadRequest."""
    try:
        data = json.loads(body)
    except ValueError as failure:
        raise BadRequest("the body is not JSON") from failure
    messages = data.get("messages") if isinstance(data, dict) else None
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise BadRequest("messages must be a list of objects")
    if data.get("stream"):
        raise BadRequest("streaming is not supported")
    named = {"model", "messages", "tools", "response_format"}
    return ChatRequest(
        model=str(data.get("model", "")),
        messages=messages,
        tools=list(data.get("tools") or []),
        response_schema=_response_schema(data.get("response_format")),
        parameters={key: value for key, value in data.items() if key not in named},
    )


def completion(reply: ChatReply) -> dict[str, Any]:
    """The reply as a chat.completion object; `created` is 0 so that equal requests get equal answers."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.content, "refusal": None}
    if reply.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.tool_calls
        ]
    usage = reply.usage
    return {
        "id": "chatcmpl-rehearsal",
        "object": "chat.completion",
        "created": 0,
        "model": reply.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reply.finish_reason, "logprobs": None}],
        "usage": {
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        },
    }


def _response_schema(response_format: Any) -> dict[str, Any] | None:
    if not isinstance(response_format, dict) or response_format.get("type") != "json_schema":
        return None
    schema = response_format.get("json_schema")
    return schema if isinstance(schema, dict) else None


class _Handler(BaseHTTPRequestHandler):
    """The two endpoints."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """List the models."""
        if self.path.rstrip("/") != "/v1/models":
            self._refuse(HTTPStatus.NOT_FOUND, "there is /v1/models and /v1/chat/completions")
            return
        models = [
            {"id": name, "object": "model", "created": 0, "owned_by": "harness-workbench"} for name in ROLES
        ]
        self._answer(HTTPStatus.OK, {"object": "list", "data": models})

    def do_POST(self) -> None:
        """Answer a chat completion."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > MAX_BODY:
            self.close_connection = True
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"more than {MAX_BODY} bytes")
            return
        body = self.rfile.read(length)
        if self.path.rstrip("/") != "/v1/chat/completions":
            self._refuse(HTTPStatus.NOT_FOUND, "there is /v1/models and /v1/chat/completions")
            return
        try:
            reply = asyncio.run(RehearsalModel().complete(read_request(body)))
        except BadRequest as failure:
            self._refuse(HTTPStatus.BAD_REQUEST, str(failure))
        except ChatError as failure:
            self._refuse(HTTPStatus.NOT_FOUND, str(failure))
        else:
            self._answer(HTTPStatus.OK, completion(reply))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is http.server's
        """Say nothing: a request per line would bury everything else in the shared log."""

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        self._answer(status, {"error": {"message": message, "type": "invalid_request_error", "code": None}})

    def _answer(self, status: HTTPStatus, payload: dict[str, Any]) -> None:
        data = json.dumps(payload, ensure_ascii=False).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Serve until interrupted."""
    server = serve(port=int(sys.argv[1]) if len(sys.argv) > 1 else 8010)
    sys.stdout.write(f"rehearsal model at http://{LOOPBACK}:{server.server_address[1]}/v1\n")
    sys.stdout.flush()
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()


if __name__ == "__main__":
    main()
