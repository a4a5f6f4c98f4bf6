"""A server that several processes of one installation share, and that ends with the last of them.

Every user holds a shared lock on `<name>.users`; arriving and leaving are serialised by `<name>.gate`; the server's
parent is the keeper (`keeper.py`), which holds `<name>.keeper` and also ends the server when its users were killed.
"""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

START_SECONDS = 40
STOP_SECONDS = 40
POLL_SECONDS = 0.02


class ServerError(RuntimeError):
    """An embedded server did not start; the message says what to do, or holds the end of its log."""


@dataclass(frozen=True, kw_only=True)
class ServerSpec:
    """How one server is run."""

    name: str
    command: Sequence[str]
    socket_folder: Path
    run: Path
    """Holds the lock files and the socket folder."""
    data: Path
    log: Path
    stop_signal: signal.Signals
    is_ready: Callable[[], bool]
    """True once the server takes commands; must not raise."""
    on_ready: Callable[[], None] = lambda: None
    """Called by every user that arrives, one at a time."""
    prepare: Sequence[str] = ()
    """Fills `draft`, which becomes `data`, before the first start."""
    draft: Path | None = None
    locks: Sequence[Path] = ()
    """Files that begin with the server's process number, and keep a second one from starting."""
    refuses_root: bool = False
    forbid_namespace: bool = False
    """Take another user at once, as where user namespaces are forbidden."""
    obstacle: Callable[[], str] = lambda: ""
    """Why the server can't be started with what is on the disk, in a sentence; empty when it can."""


class SharedServer:
    """One process's use of a shared server: `acquire` starts it when needed, `release` stops it after the last user."""

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self.users: IO[bytes] | None = None

    def acquire(self) -> None:
        """Hold the server, starting it if it is not there; raises ServerError when it does not come up."""
        # Traversable by another user, in case the server has to run as one.
        for folder, mode in ((self.spec.run, 0o711), (self.spec.socket_folder, 0o700)):
            make_folder(folder, mode)
        self.spec.log.parent.mkdir(parents=True, exist_ok=True)
        with self.gate():
            users = self.lock_file("users").open("rb")
            fcntl.flock(users, fcntl.LOCK_SH)
            self.users = users
            try:
                self.start()
                self.spec.on_ready()
            except BaseException:
                self.leave()
                raise

    def release(self) -> None:
        """Let go of the server; whoever is last stops it and waits until it has ended. Safe to call twice."""
        if self.users is not None:
            with self.gate():
                self.leave()

    def leave(self) -> None:
        """Drop our lock, inside the gate; stop the server when that was the last one."""
        users, self.users = self.users, None
        if users is None:
            return
        with users:
            try:
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            self.stop_keeper()

    def revive(self) -> None:
        """Start the server again for a user that holds it already; raises ServerError."""
        with self.gate():
            self.start()

    def fileno(self) -> int:
        """Return the descriptor that holds the server; a child that inherits it holds the server as well."""
        if self.users is None:
            raise ValueError(f"{self.spec.name} is not in use")
        return self.users.fileno()

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Hold the server for the length of a block."""
        self.acquire()
        try:
            yield
        finally:
            self.release()

    def is_running(self) -> bool:
        """Whether a keeper, and so a server that runs or is about to, is there."""
        with self.lock_file("keeper").open("rb") as keeper:
            try:
                fcntl.flock(keeper, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False

    def start(self) -> None:
        """Have a keeper and wait for its server."""
        deadline = time.monotonic() + START_SECONDS
        keeper: subprocess.Popen[bytes] | None = None
        try:
            while not (self.is_running() and self.spec.is_ready()):
                if keeper is not None and keeper.poll():
                    raise ServerError(self.describe_failure("did not start"))
                if time.monotonic() > deadline:
                    raise ServerError(self.describe_failure(f"was not ready after {START_SECONDS} seconds"))
                if (keeper is None or keeper.poll() is not None) and not self.is_running():
                    if obstacle := self.spec.obstacle():
                        raise ServerError(obstacle)
                    keeper = self.start_keeper()
                time.sleep(POLL_SECONDS)
        finally:
            if keeper is not None:
                # It outlives this process on purpose; Popen would warn about that when it is collected.
                keeper.returncode = keeper.returncode or 0

    def start_keeper(self) -> "subprocess.Popen[bytes]":
        """Start the server's parent, detached from us and our terminal."""
        spec = self.spec
        description = {
            "command": list(spec.command),
            "prepare": list(spec.prepare),
            "data": str(spec.data),
            "draft": str(spec.draft or ""),
            "log": str(spec.log),
            "locks": [str(path) for path in spec.locks],
            "owned": [str(path) for path in (spec.socket_folder, spec.data) if path.exists()],
            "stop_signal": int(spec.stop_signal),
            "refuses_root": spec.refuses_root,
            "forbid_namespace": spec.forbid_namespace,
            "users_lock": str(self.lock_file("users")),
            "keeper_lock": str(self.lock_file("keeper")),
        }
        # The environment is bare: PGDATA, LD_PRELOAD and the like are not for this server.
        return subprocess.Popen(
            [sys.executable, "-I", "-S", str(Path(__file__).with_name("keeper.py")), json.dumps(description)],
            cwd=spec.run,
            env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def stop_keeper(self) -> None:
        """Tell the keeper to stop its server, and wait for both; does nothing without a keeper."""
        deadline = time.monotonic() + STOP_SECONDS
        told = False
        while self.is_running() and time.monotonic() < deadline:
            pid = self.lock_file("keeper").read_text()
            if pid and not told:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGTERM)
                told = True
            time.sleep(POLL_SECONDS)

    @contextlib.contextmanager
    def gate(self) -> Iterator[None]:
        """One process at a time arrives or leaves."""
        with self.lock_file("gate").open("rb") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield

    def lock_file(self, kind: str) -> Path:
        """Return one of the three files, made if need be."""
        path = self.spec.run / f"{self.spec.name}.{kind}"
        path.touch(mode=0o600)
        return path

    def describe_failure(self, what: str) -> str:
        """Say what happened with the last lines of the server's log."""
        lines = self.spec.log.read_text(errors="replace").splitlines()[-8:] if self.spec.log.exists() else []
        return "\n".join([f"The embedded {self.spec.name} {what}; see {self.spec.log}:", *lines])


def make_folder(directory: Path, mode: int) -> None:
    """Create `directory` with `mode`; PermissionError when someone else made it, or made it a link."""
    directory.parent.mkdir(parents=True, exist_ok=True)
    directory.mkdir(mode=mode, exist_ok=True)
    status = directory.lstat()
    if directory.is_symlink() or os.getuid() not in {0, status.st_uid}:
        raise PermissionError(f"{directory} belongs to someone else")
    directory.chmod(mode)
