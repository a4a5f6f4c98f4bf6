import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from harness_repo.runtime.curl import to_curl

SHELLS = [shell for shell in ("bash", "dash", "sh") if shutil.which(shell)]
pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
# Everything that a shell might make something of.
WICKED = "it's \"$HOME\" `id` $(id) \\ \\n \n JSON\n !! %s ${x} <<'JSON' \t 中文 \u202e end"


class Server(ThreadingHTTPServer):
    """Keeps what it was sent, as a model's server would get it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.got: list[tuple[str, str, Any]] = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Server)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, self.headers["Authorization"], json.loads(body)))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"ok": true}')

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the base class names it
        """Quiet."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def run(shell: str, command: str, server: Server, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **more,
        "PATH": os.environ["PATH"],
        "LLM_API_KEY": "sk-test",
        "LLM_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1",
    }
    return subprocess.run(
        [shell], input=command, env=environment, text=True, capture_output=True, timeout=30, check=False
    )


@pytest.mark.parametrize("shell", SHELLS)
def test_a_real_shell_sends_exactly_the_payload(server: Server, shell: str) -> None:
    payload = {"model": "m", "messages": [{"role": "user", "content": WICKED}]}

    done = run(shell, to_curl(payload), server)

    assert (done.returncode, done.stdout) == (0, '{"ok": true}'), done.stderr
    assert server.got == [("/v1/chat/completions", "Bearer sk-test", payload)]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_model_that_is_not_known_is_taken_from_the_environment(server: Server, shell: str) -> None:
    payload = {"messages": [{"role": "user", "content": WICKED}], "tools": []}

    done = run(shell, to_curl(payload, ["it's `not` $known!"]), server, LLM_MODEL="mine")

    assert (done.returncode, done.stdout, done.stderr) == (0, '{"ok": true}', "")
    assert server.got[0][2] == {"model": "mine", **payload}


def test_without_one_there_a_word_says_where_the_model_belongs(server: Server) -> None:
    assert run("sh", to_curl({"messages": []}), server).returncode == 0
    assert server.got[0][2] == {"model": "MODEL", "messages": []}


def test_a_body_beyond_what_an_argument_may_have_arrives_whole(server: Server) -> None:
    payload = {"model": "m", "messages": [{"role": "user", "content": "长" * 2_000_000}]}

    assert run("sh", to_curl(payload), server).returncode == 0
    assert server.got[0][2] == payload


def test_no_key_and_nothing_hidden_stands_in_the_command() -> None:
    command = to_curl({"model": "m", "messages": [{"role": "user", "content": "wow!\u202egpj"}]})

    assert "$LLM_API_KEY" in command
    assert "!" not in command.replace("$!", "")
    assert "\u202e" not in command
