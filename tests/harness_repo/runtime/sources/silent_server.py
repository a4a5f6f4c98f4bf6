"""An MCP server over HTTP, in this process, that never answers the end of a session."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextmanager
def serve_silent() -> Iterator[tuple[str, list[str]]]:
    """Gives its URL, and what it was asked as it comes: the methods of JSON-RPC, or those of HTTP."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    server.block_on_close = False
    asked: list[str] = []
    over = threading.Event()
    server.asked, server.over = asked, over  # type: ignore[attr-defined]  # the handler's way to them
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/mcp", asked
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 65536
    server: Any

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.server.asked.append("GET")
        self._send(405, b"")

    def do_DELETE(self) -> None:
        self.server.asked.append("DELETE")
        self.server.over.wait()
        self.close_connection = True

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(message["method"])
        if "id" not in message:
            self._send(202, b"")
            return
        answer = _ANSWERS.get(message["method"])
        outcome = {"result": answer} if answer else {"error": {"code": -32601, "message": "not found"}}
        self._send(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **outcome}).encode())

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Mcp-Session-Id", "s-1")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


_ANSWERS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "silent", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "get_stock", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "12"}]},
}
