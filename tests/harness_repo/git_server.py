"""A real git server over HTTP on loopback, with a password: git's own http-backend behind Python's server."""

import base64
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class GitServer:
    """What is served, to whom, and what was asked."""

    root: Path
    url: str = ""
    token: str = ""
    # Where to send everybody instead, to see whether they follow.
    redirect: str = ""
    paths: list[str] = field(default_factory=list)
    signed: list[str] = field(default_factory=list)


@contextmanager
def serve_git(root: Path) -> Iterator[GitServer]:
    state = GitServer(root)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self, state)

        def do_POST(self) -> None:
            answer(self, state)

        def log_message(self, format: str, *arguments: object) -> None:  # noqa: A002  the base class's name
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(request: BaseHTTPRequestHandler, state: GitServer) -> None:
    state.paths.append(request.path)
    header = request.headers.get("Authorization", "")
    if header:
        state.signed.append(base64.b64decode(header.removeprefix("Basic ")).decode())
    if state.redirect:
        request.send_response(302)
        request.send_header("Location", state.redirect + request.path)
        request.end_headers()
    elif state.token and not (state.signed and state.signed[-1].endswith(f":{state.token}") and header):
        request.send_response(401)
        request.send_header("WWW-Authenticate", 'Basic realm="git"')
        request.end_headers()
    else:
        run_backend(request, state)


def run_backend(request: BaseHTTPRequestHandler, state: GitServer) -> None:
    path, _, query = request.path.partition("?")
    env = {
        "PATH": os.environ["PATH"],
        "GIT_PROJECT_ROOT": str(state.root),
        "GIT_HTTP_EXPORT_ALL": "1",
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": request.command,
        "CONTENT_TYPE": request.headers.get("Content-Type", ""),
        "REMOTE_USER": "tester",
        "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        "HTTP_CONTENT_ENCODING": request.headers.get("Content-Encoding", ""),
    }
    body = request.rfile.read(int(request.headers.get("Content-Length") or 0))
    out = subprocess.run(
        ["git", "http-backend"], input=body, env=env, capture_output=True, check=False
    ).stdout
    head, _, content = out.partition(b"\r\n\r\n")
    lines = [line.split(": ", 1) for line in head.decode().split("\r\n")]
    status = next((value for key, value in lines if key == "Status"), "200 OK")
    request.send_response(int(status[:3]))
    for key, value in lines:
        if key != "Status":
            request.send_header(key, value)
    request.end_headers()
    request.wfile.write(content)
