"""Real processes of an installation of their own, in a folder of their own."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE = 60.0
SETTINGS = (
    "DATABASE_URL",
    "CELERY_BROKER_URL",
    "SECRET_KEY",
    "DEBUG",
    "PORT",
    "WEB_HOST",
    "REPOSITORIES_DIR",
)


@dataclass
class Installation:
    """A `var` and the environment that points at it."""

    var: Path
    environment: dict[str, str]
    ups: "list[Up]" = field(default_factory=list)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def manage(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        with self.start(*arguments) as process:
            out, err = process.communicate(timeout=PATIENCE)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def up(self, *arguments: str) -> "Up":
        log = self.var / f"up-{len(self.ups)}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "manage.py", "up", *(arguments or ("--no-demonstration",))],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.ups.append(Up(process, log))
        return self.ups[-1]

    def processes(self) -> list[psutil.Process]:
        """Every living process that carries this installation in its environment or its command line."""
        return [process for process in psutil.process_iter() if self.owns(process)]

    def owns(self, process: psutil.Process) -> bool:
        with contextlib.suppress(psutil.Error):
            if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                return False
            words = " ".join(process.cmdline())
            return str(self.var) in words or process.environ().get("WORKBENCH_VAR") == str(self.var)
        return False


@dataclass
class Up:
    """A running `manage.py up`."""

    process: "subprocess.Popen[bytes]"
    log: Path

    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def wait_for(self, pattern: str) -> "re.Match[str]":
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(pattern, self.said())):
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.05)
        return found

    def url(self) -> str:
        return self.wait_for(r"ready at (http://\S+/)")[1]

    def part(self, name: str) -> int:
        """The process number that `name` had last."""
        self.wait_for(rf"{name} runs as process \d+")
        return int(re.findall(rf"{name} runs as process (\d+)", self.said())[-1])

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE)


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@contextlib.contextmanager
def make_installation() -> Iterator[Installation]:
    """Give an empty installation; at the end stop what was started and see that nothing of it is left."""
    var = Path(tempfile.mkdtemp(prefix="wb-ops-"))
    environment = {key: value for key, value in os.environ.items() if key not in SETTINGS}
    made = Installation(var, {**environment, "WORKBENCH_VAR": str(var), "PORT": "0", "WEB_WORKERS": "1"})
    try:
        yield made
    finally:
        for running in made.ups:
            running.stop()
    wait_until(lambda: made.processes() == [])
    shutil.rmtree(var)


@pytest.fixture
def installation() -> Iterator[Installation]:
    with make_installation() as made:
        yield made


@pytest.fixture(scope="module")
def ended() -> Iterator[Installation]:
    """An installation for tests that start it and end it; the first of them makes its database."""
    with make_installation() as made:
        yield made


@pytest.fixture(scope="module")
def running() -> Iterator[Installation]:
    """An installation that is up, for tests that leave it so."""
    with make_installation() as made:
        made.up()
        yield made
