"""A real HTTP server on the loopback that answers as its paths say, and remembers what it was asked."""

import gzip
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

BODIES: dict[str, bytes] = {
    "/items/3": '{"name": "羊绒围巾", "price": 89, "options": [{"sku": 1}]}'.encode(),
    "/html": b"<html>welcome</html>",
    "/nan": b'{"price": NaN}',
    "/deep": b"[" * 5000 + b"]" * 5000,
    "/bom": b'\xef\xbb\xbf{"a": 1}',
    "/latin": '{"a": "é"}'.encode("latin-1"),
    "/huge": b'"' + b"x" * 2_000_000 + b'"',
    "/large": b'["' + b"x" * 200_000 + b'", 1]',
    "/empty": b"",
    "/null": b"null",
}


@dataclass
class Shop:
    """The server's address, and the requests it got."""

    port: int
    requests: list[dict[str, Any]] = field(default_factory=list)
    # Where /elsewhere redirects to.
    elsewhere: str = "http://127.0.0.2:9/"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serve_shop(tls: ssl.SSLContext | None = None) -> Iterator[Shop]:
    server = _Server(("127.0.0.1", 0), _Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    server.daemon_threads = True
    shop = Shop(server.server_address[1])
    server.shop = shop  # type: ignore[attr-defined]  # the handler's way to it
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield shop
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    def handle_error(self, *_: object) -> None:
        """Clients that go away are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet, or the second waits for the first to be acknowledged.
    wbufsize = 65536

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (ConnectionError, ValueError):
            self.close_connection = True

    def do_GET(self) -> None:
        at = urlsplit(self.path)
        size = int(self.headers.get("content-length", 0))
        asked = {
            "method": self.command,
            "path": at.path,
            "query": parse_qsl(at.query, keep_blank_values=True),
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": self.rfile.read(size).decode(),
        }
        shop: Shop = self.server.shop  # type: ignore[attr-defined]
        shop.requests.append(asked)
        self._respond(at.path, asked, shop)

    do_POST = do_PUT = do_PATCH = do_DELETE = do_GET  # noqa: N815

    def _respond(self, path: str, asked: dict[str, Any], shop: Shop) -> None:
        if path == "/echo":
            self._send(200, json.dumps(asked).encode())
        elif path.startswith("/padded/"):
            # A refusal that quotes the header, so far from its start, as JSON.
            said = "x" * int(path.split("/")[2]) + asked["headers"].get("authorization", "")
            self._send(400, json.dumps({"e": said}).encode())
        elif path.startswith("/status/"):
            self._send(int(path.split("/")[2]), b'{"error": "link_id is too large"}')
        elif path == "/slow":
            time.sleep(0.7)
            self._send(200, b"{}")
        elif path == "/drip":
            self._drip()
        elif path == "/reset":
            self._reset()
        elif path == "/short":
            self._send(200, b'{"a": 1}', length=500)
            self.close_connection = True
        elif path == "/gzip":
            self._send(200, gzip.compress(b"0" * 5_000_000), {"Content-Encoding": "gzip"})
        elif path in ("/moved", "/loop", "/elsewhere"):
            target = {"/moved": "/items/3", "/loop": "/loop", "/elsewhere": shop.elsewhere}[path]
            self._send(302, b"", {"Location": target})
        else:
            self._send(200 if path in BODIES else 404, BODIES.get(path, b"{}"))

    def _send(
        self, status: int, body: bytes, headers: dict[str, str] | None = None, length: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self) -> None:
        """A body that comes a byte at a time: each read is quick, and the whole takes long."""
        self.send_response(200)
        self.send_header("Content-Length", "20")
        self.end_headers()
        for _ in range(20):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(0.05)

    def _reset(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True
