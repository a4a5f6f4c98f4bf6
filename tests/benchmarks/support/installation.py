"""An installation of the benchmark's own: a folder, an endpoint, and the processes that the supervisor would run.

Knows nothing of Django until `prepare`, which sets the environment that the settings read.
"""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.support.watching import tree

ROOT = Path(__file__).resolve().parent.parent.parent.parent
PATIENCE = 60.0
# Whatever is set for another installation.
_FOREIGN = ("DATABASE_URL", "CELERY_BROKER_URL", "REPOSITORIES_DIR", "DEBUG")
_FOREIGN_PREFIXES = ("LLM_", "EVALUATION_", "REHEARSAL_", "CELERY_")
MODEL = "agent-3"


def wait_until(
    is_true: Callable[[], bool], what: str, patience: float = PATIENCE, pause: float = 0.02
) -> None:
    """Return when it is; TimeoutError when it is not in time."""
    deadline = time.monotonic() + patience
    while not is_true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {patience:g} seconds for {what}")
        time.sleep(pause)


@dataclass
class Endpoint:
    """The endpoint's process, as its clients and we see it."""

    process: "subprocess.Popen[str]"
    port: int

    @property
    def base_url(self) -> str:
        """What LLM_BASE_URL is set to."""
        return f"http://127.0.0.1:{self.port}/v1"

    def configure(self, **values: Any) -> None:
        """Behave so from now on, and count from zero."""
        self._get("/config", json.dumps(values).encode())

    def stats(self) -> dict[str, Any]:
        """The counts."""
        return self._get("/stats")

    def _get(self, path: str, body: bytes | None = None) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", body, timeout=10) as response:
            counts: dict[str, Any] = json.loads(response.read())
            return counts


@contextlib.contextmanager
def run_endpoint() -> Iterator[Endpoint]:
    """Start it, and end it with the block."""
    command = [sys.executable, "-m", "tests.benchmarks.support.endpoint"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            yield Endpoint(process, int(process.stdout.readline()))
        finally:
            process.kill()


def prepare(var: Path, endpoint: Endpoint) -> None:
    """Point this process's environment, and that of all it starts, at the installation in `var`."""
    for name in [*os.environ]:
        if name in _FOREIGN or name.startswith(_FOREIGN_PREFIXES):
            del os.environ[name]
    os.environ |= {
        "WORKBENCH_VAR": str(var),
        "DJANGO_SETTINGS_MODULE": "workbench.settings",
        "LLM_BASE_URL": endpoint.base_url,
        "LLM_API_KEY": "none",
        "LLM_MODEL": MODEL,
        "LOG_LEVEL": "WARNING",
    }


@contextlib.contextmanager
def make_folder() -> Iterator[Path]:
    """A short folder, for the sockets' sake."""
    folder = Path(tempfile.mkdtemp(prefix="wb-speed-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def part_command(name: str) -> tuple[list[str], dict[str, str]]:
    """What the supervisor starts for a part, and what it adds to the environment."""
    from workbench.management.commands.up import list_parts  # noqa: PLC0415  settings come first

    with socket.socket() as unused:
        part = next(part for part in list_parts(unused, []) if part.name == name)
    return [*part.command], dict(part.environment)


@dataclass
class Process:
    """A worker or beat, in a session of its own."""

    name: str
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    _running: "subprocess.Popen[bytes] | None" = None

    def start(self) -> None:
        """Start it; `wait_ready` says when it takes tasks."""
        command, added = part_command(self.name)
        with self.log.open("ab") as log:
            self._running = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**os.environ, **added, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Return when it says so."""
        wait_until(lambda: b" ready." in self.log.read_bytes(), f"the {self.name}; see {self.log}")

    @property
    def pid(self) -> int:
        """Of its first process."""
        assert self._running
        return self._running.pid

    def processes(self) -> list[psutil.Process]:
        """All of it."""
        return tree(self.pid)

    def children(self) -> list[psutil.Process]:
        """The processes of a worker's pool."""
        return self.processes()[1:]

    def kill(self) -> None:
        """SIGKILL for it and all that it has started."""
        if self._running and self._running.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
            self._running.wait()

    def said(self) -> str:
        """The end of its log."""
        return self.log.read_text(errors="replace")[-3000:]


@contextlib.contextmanager
def run_process(name: str, var: Path, **environment: str) -> Iterator[Process]:
    """A worker that is ready, or beat; killed with the block."""
    process = Process(name, var / f"{name}-{time.monotonic_ns()}.log", environment)
    process.start()
    try:
        if name == "worker":
            process.wait_ready()
        yield process
    finally:
        process.kill()


def server_pids(var: Path) -> list[int]:
    """The embedded servers' own first processes (not their keepers')."""
    marks = ("postgres", "valkey-server")
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = process.cmdline()
            # PostgreSQL's own children don't name the folder.
            if words and Path(words[0]).name.startswith(marks) and str(var) in " ".join(words):
                found.append(process.pid)
    return found
