"""An agent as a command: our case as JSON on its standard input, a trajectory or {"reply": "..."} on its output.

It runs in a throwaway copy of the version's files, in a process group of its own, under a time-out and a memory
limit, with a clean environment. That keeps runs apart; it is no wall against a hostile program.
"""

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.worktree import remove_folder, write_worktree
from harness_repo.runtime import launcher
from harness_repo.runtime.foreign import MOST_BYTES, case_to_json, failed_run, read_answer, shorten
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import Status, Trajectory
from harness_repo.snapshot import Snapshot

# Of standard error, from its end.
STDERR_BYTES = 4000
# A process that left the group may hold the pipes open; nobody waits longer for it.
PIPE_SECONDS = 1.0

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class CommandSettings:
    """How the command is run; an operator's choice, never the harness's."""

    # A name with a slash is a file of the worktree, one without is found on PATH.
    command: tuple[str, ...]
    # Of one run; then the whole process group is killed.
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

    async def run(self, case: RunCase) -> Trajectory:
        """Answer the case once.

        Status "runner_error" when the command cannot be run, fails, or gives no trajectory; "time_limit" when
        it takes too long. The error ends with what it wrote to standard error; that and the exit code are kept
        in `runner` in any case.
        """
        root = Path(tempfile.mkdtemp(prefix="harness-run-"))
        began = time.monotonic()
        try:
            await _in_thread(self._lay_out, root, case.commit)
            began = time.monotonic()
            ended = await self._execute(root, case_to_json(case))
        except (HarnessRepoError, OSError, ValueError) as failure:
            runner = _describe(None, "")
            return failed_run("runner_error", f"cannot be run: {failure}", runner, _elapsed_ms(began))
        finally:
            await _in_thread(remove_folder, root)
        return _judge(ended, _elapsed_ms(began))

    def _lay_out(self, root: Path, commit: str) -> None:
        with self._lock:
            snapshot = self._snapshots.get(commit) or self._read_snapshot(commit)
            self._snapshots[commit] = snapshot
        _tree(root).mkdir()
        _scratch(root).mkdir()
        write_worktree(snapshot, _tree(root))

    async def _execute(self, root: Path, case: bytes) -> _Ended:
        loop = asyncio.get_running_loop()
        transport, output = await loop.subprocess_exec(
            _Output,
            *_launch(self._settings),
            cwd=_tree(root),
            env=self._environment(root),
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
            await _end(transport, output)
        if output.is_too_much:
            status, error = "runner_error", f"more than {MOST_BYTES} bytes on standard output"
        return _Ended(status, error, transport.get_returncode(), bytes(output.out), output.stderr())

    def _environment(self, root: Path) -> Mapping[str, str]:
        passed = {name: os.environ[name] for name in self._settings.environment if name in os.environ}
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(_tree(root)),
            "TMPDIR": str(_scratch(root)),
            "LANG": "C.UTF-8",
            **passed,
        }


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
            self._err = (self._err + data)[-STDERR_BYTES:]
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
    """Kill what is left of the process group, read what was said before, and leave no process behind."""
    _kill_group(transport.get_pid())
    try:
        await output.exited.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(output.closed.wait(), PIPE_SECONDS)
    finally:
        transport.close()


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)


def _judge(ended: _Ended, elapsed_ms: float) -> Trajectory:
    """The trajectory of a run that has ended."""
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
    return f"ended by {signal.Signals(-code).name}"


def _describe(exit_code: int | None, stderr: str) -> dict[str, Any]:
    return {"kind": "command", "exit_code": exit_code, "stderr": stderr}


def _with_stderr(error: str, stderr: str) -> str:
    return f"{error}: {stderr}" if stderr else error


def _tree(root: Path) -> Path:
    return root / "tree"


def _scratch(root: Path) -> Path:
    return root / "tmp"


def _elapsed_ms(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 2)


async def _in_thread(function: Callable[_P, _Result], *args: _P.args, **kwargs: _P.kwargs) -> _Result:
    """Call it in a thread. Who is cancelled meanwhile waits for it: what it makes is to be cleaned up."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
