"""A real HTTP server on loopback in the OpenAI protocol whose answers a test scripts, by what is asked for.

    with model_server() as server:
        use_server(settings, server)                      # every role asks it now
        server.script("DraftOutput", broken_json, good)   # wrong once, then as the rehearsal model answers
        ...
        assert len(server.asked("DraftOutput")) == 2

What is asked for is the name of the request's schema ("DiagnosisOutput", "DraftOutput", "ClusterName"), or the role
where there is none ("policy"). Behaviours are played one after the other, the last one for ever; without a script, and
as `good`, it answers as the rehearsal model does.
"""

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from pytest_django import Settings

from evolution.adapters.chat import Role, rehearsal_name
from evolution.adapters.rehearsal.model import RehearsalModel
from evolution.adapters.rehearsal.server import completion, read_request
from harness_repo.runtime.chat import ChatReply, ChatRequest, Usage
from tests.evolution.obedience import obey, orders_anywhere, orders_outside_fences

# Models of the server are called by this and the role, or by any other name that ends in the role.
PREFIX = "served"
ROLE_OF_SCHEMA = {"DiagnosisOutput": Role.DIAGNOSER, "DraftOutput": Role.EDITOR}


@dataclass(frozen=True)
class Answer:
    """What goes over the wire; `body` is JSON unless it is bytes."""

    body: Any
    status: int = 200
    # seconds before it is sent, or until the server stops
    after: float = 0.0
    # the connection is closed in the middle of the body
    is_cut: bool = False


Behaviour = Callable[[ChatRequest], Answer]


def good(request: ChatRequest) -> Answer:
    """The rehearsal model's answer in the role that the request is for."""
    return Answer(completion(_good_reply(request)))


def saying(text: str, *, finish_reason: str = "stop") -> Behaviour:
    """That very text, whatever is asked."""
    reply = ChatReply(text, finish_reason=finish_reason, usage=Usage(70, 30), model="served")
    return lambda _request: Answer(completion(reply))


def answering(value: Any) -> Behaviour:
    """That very value, as JSON."""
    return saying(json.dumps(value, ensure_ascii=False))


def changed(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Behaviour:
    """The good answer's object, changed."""

    def answer(request: ChatRequest) -> Answer:
        reply = _good_reply(request)
        text = json.dumps(change(json.loads(reply.content or "{}")), ensure_ascii=False)
        return Answer(completion(replace(reply, content=text)))

    return answer


def in_code_fence(request: ChatRequest) -> Answer:
    """The good answer as models like to give it: in a fence."""
    reply = _good_reply(request)
    return Answer(completion(replace(reply, content=f"```json\n{reply.content}\n```")))


def broken_json(request: ChatRequest) -> Answer:
    """The first half of the good answer, as if it were a whole one."""
    reply = _good_reply(request)
    text = reply.content or ""
    return Answer(completion(replace(reply, content=text[: len(text) // 2])))


def cut_off(request: ChatRequest) -> Answer:
    """The first half of the good answer: its tokens have run out."""
    reply = _good_reply(request)
    text = reply.content or ""
    return Answer(completion(replace(reply, content=text[: len(text) // 2], finish_reason="length")))


def hang_up(request: ChatRequest) -> Answer:
    """A connection that is closed in the middle of the good answer."""
    return replace(good(request), is_cut=True)


wrong_shape = answering({"answer": 42})
empty = saying("")
refusing_in_words = saying("I'm sorry, but I can't help with that.")


def refusing(request: ChatRequest) -> Answer:
    """A refusal as the protocol has it."""
    body = completion(ChatReply(None, usage=Usage(70, 5), model=request.model))
    body["choices"][0]["message"]["refusal"] = "I can't help with that."
    return Answer(body)


def failing(status: int, message: str = "no") -> Behaviour:
    """An error as OpenAI writes it."""
    error = {"error": {"message": message, "type": "x", "code": None}}
    return lambda _request: Answer(error, status)


def slow(seconds: float, then: Behaviour = good) -> Behaviour:
    """Another behaviour, late; the wait is over when the server stops."""
    return lambda request: replace(then(request), after=seconds)


def obeying(request: ChatRequest) -> Answer:
    """Does whatever the messages order outside their data fences, and else answers well.

    What it is to read as material stands inside the fences, so a transcript must not move it.
    """
    return Answer(completion(obey(_good_reply(request), orders_outside_fences(request))))


def gullible(request: ChatRequest) -> Answer:
    """Does whatever is ordered anywhere, in the material too, and else answers well."""
    return Answer(completion(obey(_good_reply(request), orders_anywhere(request))))


class ModelServer(ThreadingHTTPServer):
    """Keeps what it was asked; see the module."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.requests: list[ChatRequest] = []
        self.over = threading.Event()
        self._scripts: dict[str, list[Behaviour]] = {}
        self._lock = threading.Lock()

    @property
    def url(self) -> str:
        """The base URL, with its version."""
        return f"http://127.0.0.1:{self.server_port}/v1"

    def script(self, subject: str, *behaviours: Behaviour) -> None:
        """Play the behaviours when the subject is asked for from now on; "*" is for all that have no script."""
        with self._lock:
            self._scripts[subject] = list(behaviours)

    def asked(self, subject: str) -> list[ChatRequest]:
        """The requests for the subject so far."""
        with self._lock:
            return [request for request in self.requests if subject_of(request) == subject]

    def next_answer(self, request: ChatRequest) -> Answer:
        """What the script has for the request."""
        with self._lock:
            self.requests.append(request)
            script = self._scripts.get(subject_of(request)) or self._scripts.get("*") or [good]
            behave = script.pop(0) if len(script) > 1 else script[0]
        return behave(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


@contextmanager
def model_server() -> Iterator[ModelServer]:
    """Serve for the length of the block."""
    with ModelServer() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()


def use_server(settings: Settings, server: ModelServer, *, retries: int = 0) -> None:
    """Make the server the endpoint of every role; a failed call is not tried again unless `retries` says so."""
    settings.LLM_BASE_URL = server.url
    settings.LLM_MAX_RETRIES = retries
    for role in Role:
        setattr(settings, f"LLM_MODEL_{role.upper()}", f"{PREFIX}-{role}")


def subject_of(request: ChatRequest) -> str:
    """What a request asks for: its schema's name, else its role."""
    name = str((request.response_schema or {}).get("name") or "")
    return name or role_of(request)


def role_of(request: ChatRequest) -> str:
    """The role that a request is for, by its schema or by the name of its model."""
    schema = str((request.response_schema or {}).get("name") or "")
    return ROLE_OF_SCHEMA.get(schema) or request.model.rsplit("-", 1)[-1]


def _good_reply(request: ChatRequest) -> ChatReply:
    if subject_of(request) == "ClusterName":
        name = {"name": "Prices told wrongly", "description": "The price told is not the one that holds."}
        return ChatReply(json.dumps(name), usage=Usage(70, 30), model=request.model)
    rehearsed = replace(request, model=rehearsal_name(role_of(request)))
    return replace(asyncio.run(RehearsalModel().complete(rehearsed)), model=request.model)


class _Handler(BaseHTTPRequestHandler):
    server: ModelServer
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.next_answer(read_request(body))
        if answer.after:
            self.server.over.wait(answer.after)
        data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.close_connection = answer.is_cut
        self.wfile.write(data[: len(data) // 2] if answer.is_cut else data)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing."""
