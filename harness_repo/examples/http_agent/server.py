#!/usr/bin/env python3
"""An agent behind HTTP: the workbench POSTs one case, and gets one trajectory.

Nothing of the workbench is imported. What there is to know:

- The body is the case (schemas/case.schema.json); `commit` says which version of the harness is measured. How the
  agent comes by that version is its own business: this one has one answer per version at hand.
- {"reply": "..."} is enough for an answer; schemas/trajectory.schema.json describes what else may be given.
- Any status but 2xx means that the run failed, and is never a score. Redirects are not followed.
- Several cases may be under way at once.
"""

import hmac
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# Comes with every request when the runner is set with --header 'Authorization: ...'.
TOKEN = os.environ.get("AGENT_TOKEN", "")


class Agent(BaseHTTPRequestHandler):
    """Answers POST / with a trajectory."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Answer one case."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not hmac.compare_digest(self.headers.get("Authorization", "").encode(), TOKEN.encode()):
            self._send(401, {"error": "no such token"})
            return
        try:
            self._send(200, answer(json.loads(body)))
        except (ValueError, KeyError, TypeError) as failure:
            self._send(400, {"error": f"not a case: {failure!r}"})

    def _send(self, status: int, value: dict[str, Any]) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(ThreadingHTTPServer):
    """Takes as many connections as an evaluation opens at once."""

    request_queue_size = 64


def answer(case: dict[str, Any]) -> dict[str, Any]:
    """Repeat the last question, and say which version was asked; a real agent thinks here."""
    danmaku = case["request"].get("danmaku") or [{"text": ""}]
    reply = f"You asked: {danmaku[-1]['text']} (version {case.get('commit', '')[:7]})"
    return {
        "reply": reply,
        "usage": {"prompt_tokens": len(str(case)) // 4, "completion_tokens": len(reply) // 4},
    }


def main() -> None:
    """Serve on the port that is given, on loopback; 0 takes a free one. The address is printed."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8765
    server = Server(("127.0.0.1", port), Agent)
    print(f"http://127.0.0.1:{server.server_port}/", flush=True)  # noqa: T201  a program prints
    server.serve_forever()


if __name__ == "__main__":
    main()
