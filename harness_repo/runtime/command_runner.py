"""An agent as a command: our case as JSON on its standard input, a trajectory or {"reply": "..."} on its output.

It runs in a throwaway copy of the version's files, under a time-out and a memory limit, with a clean environment, as
the child of a `launcher` that ends every process it leaves behind. That keeps runs apart; it is no wall against a
hostile program, which runs as the worker's user.
"""

import asyncio
import contextlib
import ctypes
import os
import re
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.worktree import write_worktree
from harness_repo.runtime import launcher
from harness_repo.runtime.elapsed import ms_since
from harness_repo.runtime.foreign import (
    MOST_BYTES,
    case_to_json,
    failed_run,
    hide_in_run,
    read_answer,
    shorten,
)
from harness_repo.runtime.hiding import hide_secrets
from harness_repo.runtime.run_folder import RunFolder, sweep_folders
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import Status, Trajectory
from harness_repo.snapshot import Snapshot

# Of standard error, from its end.
STDERR_BYTES = 4000
# What cannot be killed may hold the pipes open; nobody waits longer for it.
PIPE_SECONDS = 1.0
# The launcher needs some for killing, and ends then.
LAUNCHER_SECONDS = 10.0
# Of prctl, in linux/prctl.h.
_SET_DUMPABLE = 4
# Names of variables whose values stand in no trajectory.
_CREDENTIAL = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class CommandSettings:
    """How the command is run; an operator's choice, never the harness's."""

    # A name with a slash is a file of the worktree, one without is found on PATH.
    command: tuple[str, ...]
    # Of one run; then all its processes are killed.
    seconds: float = 120.0
    # Of data (heap and anonymous maps), for each process.
    memory_mb: int = 2048
    # Names of variables that are passed on, beside PATH.
    environment: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Ended:
    """What a run left: why it was ended, if it was, and what the program said."""

    status: Status
    error: str
    exit_code: int | None
    out: bytes
    stderr: str


class CommandRunner:
    """Implements Runner; any number of runs may be under way at once, each in a folder of its own."""

    def __init__(self, settings: CommandSettings, read_snapshot: Callable[[str], Snapshot]) -> None:
        """`read_snapshot` gives the files of a commit; it is called in a thread, once for each commit."""
        self._settings = settings
        self._read_snapshot = read_snapshot
        self._snapshots: dict[str, Snapshot] = {}
        self._lock = threading.Lock()
        self._is_swept = False
        _close_environment()

    async def run(self, case: RunCase) -> Trajectory:
        """Answer the case once.

        Status "runner_error" when the command cannot be run, fails, or gives no trajectory; "time_limit" when
        it takes too long. The error ends with what it wrote to standard error; that and the exit code are kept
        in `runner` in any case. Values of variables that look like credentials are hidden everywhere.
        """
        began = time.monotonic()
        try:
            folder = RunFolder.make()
            try:
                await _unbroken(asyncio.to_thread(self._lay_out, folder, case.commit))
                began = time.monotonic()
                ended = await self._execute(folder, case_to_json(case))
            finally:
                elapsed = ms_since(began)
                await _unbroken(asyncio.to_thread(folder.remove))
        except (HarnessRepoError, OSError, ValueError) as failure:
            runner = _describe(None, "")
            return failed_run("runner_error", f"cannot be run: {failure}", runner, ms_since(began))
        return await asyncio.to_thread(_judge, ended, elapsed, self._secrets())

    def _lay_out(self, folder: RunFolder, commit: str) -> None:
        with self._lock:
            if not self._is_swept:
                self._is_swept = True
                sweep_folders()
            snapshot = self._snapshots.get(commit) or self._read_snapshot(commit)
            self._snapshots[commit] = snapshot
        write_worktree(snapshot, folder.tree)

    async def _execute(self, folder: RunFolder, case: bytes) -> _Ended:
        loop = asyncio.get_running_loop()
        transport, output = await loop.subprocess_exec(
            _Output,
            *_launch(self._settings),
            cwd=folder.tree,
            env=self._environment(folder),
            start_new_session=True,
        )
        seconds = self._settings.seconds
        status: Status = "ok"
        error = ""
        try:
            _feed(transport, case)
            async with asyncio.timeout(seconds):
                await output.settled.wait()
        except TimeoutError:
            status, error = "time_limit", f"not done after {seconds:g} seconds"
        finally:
            await _unbroken(_end(transport, output))
        if output.is_too_much:
            status, error = "runner_error", f"more than {MOST_BYTES} bytes on standard output"
        return _Ended(status, error, transport.get_returncode(), bytes(output.out), output.stderr())

    def _environment(self, folder: RunFolder) -> Mapping[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder.tree),
            "TMPDIR": str(folder.scratch),
            "LANG": "C.UTF-8",
            **self._passed_on(),
        }

    def _passed_on(self) -> dict[str, str]:
        return {name: os.environ[name] for name in self._settings.environment if name in os.environ}

    def _secrets(self) -> list[str]:
        return [value for name, value in self._passed_on().items() if _CREDENTIAL.search(name)]


class _Output(asyncio.SubprocessProtocol):
    """Gathers what a process says, within bounds, and knows when it has ended."""

    def __init__(self) -> None:
        self.out = bytearray()
        self._err = bytearray()
        self.is_too_much = False
        self.exited = asyncio.Event()
        # Set when the process has ended, or need not go on.
        self.settled = asyncio.Event()
        # Set when the process has ended and its pipes are at their end.
        self.closed = asyncio.Event()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep the beginning of standard output and the end of standard error."""
        if fd == 2:
            # Some more than is kept: a secret at the beginning would be cut in two.
            self._err = (self._err + data)[-2 * STDERR_BYTES :]
        elif len(self.out) + len(data) <= MOST_BYTES:
            self.out += data
        else:
            self.is_too_much = True
            self.settled.set()

    def process_exited(self) -> None:
        """Let the run go on."""
        self.exited.set()
        self.settled.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002  asyncio's signature
        """Everything has been read."""
        self.closed.set()

    def stderr(self) -> str:
        """The end of standard error."""
        return self._err.decode("utf-8", "replace").strip()


def _launch(settings: CommandSettings) -> list[str]:
    """The command behind the program that sets its limits."""
    memory = settings.memory_mb * 1024 * 1024
    start = [sys.executable, "-I", "-S", str(Path(launcher.__file__).resolve())]
    return [*start, str(memory), str(os.getpid()), *settings.command]


def _feed(transport: asyncio.SubprocessTransport, case: bytes) -> None:
    """Give it the case; one that does not read it is free to."""
    pipe = transport.get_pipe_transport(0)
    if isinstance(pipe, asyncio.WriteTransport):
        pipe.write(case)
        pipe.close()


async def _end(transport: asyncio.SubprocessTransport, output: _Output) -> None:
    """Have the launcher kill all that is left, read what was said before, and leave no process behind."""
    try:
        _send(transport, signal.SIGTERM)
        if not await _comes(output.exited, LAUNCHER_SECONDS):
            # It was stopped, say; its child ends with it.
            _send(transport, signal.SIGKILL)
            await output.exited.wait()
        await _comes(output.closed, PIPE_SECONDS)
    finally:
        transport.close()


def _send(transport: asyncio.SubprocessTransport, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        transport.send_signal(number)


async def _comes(event: asyncio.Event, seconds: float) -> bool:
    """Wait for an event, at most so long; say whether it came."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
    return event.is_set()


def _close_environment() -> None:
    """Have the kernel refuse to show this process's environment and memory to others of its user.

    A command could look its worker's secrets up there. Who may trace any process (CAP_SYS_PTRACE) still can.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)


def _judge(ended: _Ended, elapsed_ms: float, secrets: list[str]) -> Trajectory:
    """The trajectory of a run that has ended, without secrets."""
    # Before anything is shortened: half a secret is not found any more.
    stderr = str(hide_secrets(ended.stderr, secrets))[-STDERR_BYTES:]
    return hide_in_run(_read(replace(ended, stderr=stderr), elapsed_ms), secrets)


def _read(ended: _Ended, elapsed_ms: float) -> Trajectory:
    runner = _describe(ended.exit_code, ended.stderr)
    if ended.status != "ok":
        return failed_run(ended.status, _with_stderr(ended.error, ended.stderr), runner, elapsed_ms)
    failure = _name_exit(ended.exit_code)
    try:
        answered = read_answer(ended.out, runner, elapsed_ms)
    except ValueError as problem:
        said = failure or f"standard output is no trajectory: {shorten(str(problem))}"
        return failed_run("runner_error", _with_stderr(said, ended.stderr), runner, elapsed_ms)
    if failure:
        return replace(answered, status="runner_error", error=_with_stderr(failure, ended.stderr))
    return answered


def _name_exit(code: int | None) -> str:
    """What is wrong with an exit code, "" if nothing is."""
    if not code:
        return ""
    if code > 0:
        return f"exit code {code}"
    # Real-time signals have no names.
    names = {one.value: one.name for one in signal.Signals}
    return f"ended by {names.get(-code, f'signal {-code}')}"


def _describe(exit_code: int | None, stderr: str) -> dict[str, Any]:
    return {"kind": "command", "exit_code": exit_code, "stderr": stderr}


def _with_stderr(error: str, stderr: str) -> str:
    return f"{error}: {stderr}" if stderr else error


async def _unbroken(work: Awaitable[_Result]) -> _Result:
    """Await it. Who is cancelled meanwhile waits for its end: what it makes is to be cleaned up."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
