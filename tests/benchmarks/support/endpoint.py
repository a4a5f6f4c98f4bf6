"""A fast OpenAI-compatible endpoint on loopback, with a latency, seeded faults and exact counts.

One process on uvloop and httptools, so that it is never what is measured. Run as a module it prints its port.

    POST /v1/chat/completions   see `answers`
    GET  /stats                 the counts since the last configuration
    POST /config                {"latency_ms", "jitter_ms", "p429", "p500", "p_reset", "retry_after", "seed"}, each
                                optional; zeroes the counts
"""

import asyncio
import hashlib
import json
import random
import socket
import struct
import time
from dataclasses import asdict, dataclass, field
from typing import Any, cast

import httptools
import uvloop

from tests.benchmarks.support.answers import answer

_ERRORS = {
    429: (b"429 Too Many Requests", b'{"error": {"message": "slow down", "type": "rate_limit_error"}}'),
    500: (b"500 Internal Server Error", b'{"error": {"message": "out of order", "type": "server_error"}}'),
}


@dataclass
class Config:
    """How it behaves; probabilities are per request, drawn from one seeded generator."""

    latency_ms: float = 200.0
    # added to the latency, uniformly from 0
    jitter_ms: float = 0.0
    # answered at once
    p429: float = 0.0
    # answered after the latency
    p500: float = 0.0
    # cut off after half the latency
    p_reset: float = 0.0
    # seconds
    retry_after: int = 1
    seed: int = 1


@dataclass
class Counts:
    """What was asked and what became of it; moments are CLOCK_MONOTONIC, which all processes share."""

    calls: int = 0
    ok: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    # calls whose client had gone before the answer; they are not in flight any more
    abandoned: int = 0
    # calls with a body that had been asked before, and those that had been answered before
    again: int = 0
    repeated: int = 0
    in_flight: int = 0
    peak: int = 0
    # call-seconds in flight
    area: float = 0.0
    first: float = 0.0
    last: float = 0.0
    connections: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    _changed: float = 0.0

    def move(self, step: int) -> None:
        """A call has begun (1) or ended (-1)."""
        now = time.monotonic()
        self.first = self.first or now
        self.area += self.in_flight * (now - (self._changed or now))
        self._changed = now
        self.in_flight += step
        self.peak = max(self.peak, self.in_flight)
        if step < 0:
            self.last = now

    def fail(self, kind: str) -> None:
        """Count a fault."""
        self.errors[kind] = self.errors.get(kind, 0) + 1


class Server:
    """What all connections share."""

    def __init__(self) -> None:
        self.configure({})

    def configure(self, values: dict[str, Any]) -> None:
        """Behave so from now on, and count from zero."""
        self.config = Config(**values)
        self.counts = Counts()
        self.asked: set[bytes] = set()
        self.answered: set[bytes] = set()
        self._draw = random.Random(self.config.seed)  # noqa: S311

    def latency(self) -> float:
        """Seconds that the next answer takes."""
        config = self.config
        jitter = self._draw.random() * config.jitter_ms if config.jitter_ms else 0.0
        return (config.latency_ms + jitter) / 1000

    def fault(self) -> str:
        """What strikes the next call; empty when nothing does."""
        config, drawn = self.config, self._draw.random()
        for kind, share in (("429", config.p429), ("500", config.p500), ("reset", config.p_reset)):
            if drawn < share:
                return kind
            drawn -= share
        return ""


class Connection(asyncio.Protocol):
    """One client's connection: a request at a time, as HTTP clients send them."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._url = b""
        self._body = b""
        # of the call that is under way, if one is
        self._under_way: Counts | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        # uvloop's is one in all but its bases.
        self._transport = cast("asyncio.Transport", transport)
        self._server.counts.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        """The client has gone, or we cut it off."""
        self._transport = None
        if self._under_way:
            self._under_way.move(-1)
            self._under_way.abandoned += 1
            self._under_way = None

    def data_received(self, data: bytes) -> None:
        """Parse what comes."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport:
                self._transport.close()

    def on_message_begin(self) -> None:
        """For httptools."""
        self._url = self._body = b""

    def on_url(self, url: bytes) -> None:
        """For httptools."""
        self._url += url

    def on_body(self, body: bytes) -> None:
        """For httptools."""
        self._body += body

    def on_message_complete(self) -> None:
        """For httptools: a whole request is there."""
        if self._url.endswith(b"/chat/completions"):
            self._take_call(self._body)
            return
        if self._url == b"/config":
            self._server.configure(json.loads(self._body))
        self._send(b"200 OK", json.dumps(asdict(self._server.counts)).encode())

    def _take_call(self, body: bytes) -> None:
        server, key = self._server, hashlib.blake2b(body, digest_size=12).digest()
        counts = server.counts
        counts.calls += 1
        counts.again += key in server.asked
        server.asked.add(key)
        counts.move(1)
        self._under_way = counts
        fault, latency = server.fault(), server.latency()
        delays = {"": latency, "429": 0.0, "500": latency, "reset": latency / 2}
        self._loop.call_later(delays[fault], self._end_call, fault, body, key, counts)

    def _end_call(self, fault: str, body: bytes, key: bytes, counts: Counts) -> None:
        """Answer; a call that began before the counts were zeroed stays with the old ones."""
        if self._transport is None:
            return
        self._under_way = None
        counts.move(-1)
        if fault == "reset":
            counts.fail(fault)
            self._reset()
        elif fault:
            counts.fail(fault)
            self._send(
                *_ERRORS[int(fault)], retry_after=self._server.config.retry_after if fault == "429" else 0
            )
        else:
            self._answer(body, key, counts)

    def _answer(self, body: bytes, key: bytes, counts: Counts) -> None:
        kind, completion = answer(body)
        counts.ok += 1
        counts.repeated += key in self._server.answered
        self._server.answered.add(key)
        counts.by_kind[kind] = counts.by_kind.get(kind, 0) + 1
        self._send(b"200 OK", completion)

    def _send(self, status: bytes, body: bytes, *, retry_after: int = 0) -> None:
        if self._transport is None:
            return
        wait = b"retry-after: %d\r\n" % retry_after if retry_after else b""
        head = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\n%scontent-length: %d\r\n\r\n"
        self._transport.write(head % (status, wait, len(body)) + body)

    def _reset(self) -> None:
        """Close with RST, as a machine that went down does."""
        assert self._transport is not None
        bare: socket.socket = self._transport.get_extra_info("socket")
        bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()


async def serve() -> None:
    """Serve on a free port of loopback until the process is ended."""
    shared = Server()
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: Connection(shared), "127.0.0.1", 0, backlog=1024)
    print(listening.sockets[0].getsockname()[1], flush=True)  # noqa: T201  who started it reads it
    await listening.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve())
