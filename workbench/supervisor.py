"""Runs the processes of an installation in the foreground: one stream of logs, restarts, and a clean end.

Written here because honcho ends everything when one process ends, and circus and supervisor bring daemons, sockets
and configuration of their own. Knows nothing of what it runs.
"""

import asyncio
import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TextIO

FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
# Seconds after which a process counts as having started well, so that the next restart is quick again.
STEADY_SECONDS = 20.0
GRACE_SECONDS = 15.0
TAIL_SECONDS = 0.3
# How long the last output of an ended process may take; a process that it set free may hold the pipe for ever.
LAST_WORDS_SECONDS = 1.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h

_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def end_with_parent(by: signal.Signals = signal.SIGTERM) -> None:
    """Between fork and exec: have the kernel end this child by a signal when its parent is killed."""
    if _LIBC is not None:
        _LIBC.prctl(PR_SET_PDEATHSIG, by)


@dataclass(frozen=True)
class Part:
    """One process that is kept running."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the supervisor's own."""
    files: Sequence[int] = ()
    """Descriptors that it inherits."""
    end_by: signal.Signals = signal.SIGTERM
    """What the kernel sends it when the supervisor is killed: once for each thread of the supervisor."""


def next_delay(delay: float, lived: float) -> float:
    """Seconds to wait before a restart: doubling up to the longest, from the start again after a steady life."""
    return FIRST_DELAY if lived > STEADY_SECONDS else min(2 * delay, LONGEST_DELAY)


def describe_end(code: int) -> str:
    """Say how a process ended, from asyncio's return code (negative: a signal)."""
    return f"ended with code {code}" if code >= 0 else f"was killed by {signal.Signals(-code).name}"


class LogStream:
    """Writes lines with the name of who said them, one at a time."""

    def __init__(self, out: TextIO, names: Sequence[str]) -> None:
        self.out = out
        self.width = max(len(name) for name in names)

    def write(self, name: str, text: str) -> None:
        """Write `text` under `name`; a reader that has gone away doesn't matter."""
        with contextlib.suppress(BrokenPipeError):
            for line in text.splitlines():
                self.out.write(f"{name:<{self.width}} | {line}\n")
            self.out.flush()

    async def copy(self, name: str, reader: asyncio.StreamReader) -> None:
        """Write what `reader` gives until its end; a line of any length is read to its end."""
        rest = b""
        while chunk := await reader.read(65536):
            *lines, rest = (rest + chunk).split(b"\n")
            if lines:
                self.write(name, b"\n".join(lines).decode(errors="replace"))
        self.write(name, rest.decode(errors="replace"))

    async def follow(self, name: str, path: Path) -> None:
        """Write what is added to a file from now on, for ever."""
        with path.open("a+b") as file:
            file.seek(0, os.SEEK_END)
            rest = b""
            while True:
                *lines, rest = (rest + file.read()).split(b"\n")
                if lines:
                    self.write(name, b"\n".join(lines).decode(errors="replace"))
                await asyncio.sleep(TAIL_SECONDS)


class Supervisor:
    """Keeps `parts` running until it is told to stop; ends their process groups and nothing else."""

    def __init__(self, parts: Sequence[Part], stream: LogStream, *, grace: float = GRACE_SECONDS) -> None:
        self.parts = parts
        self.stream = stream
        self.grace = grace
        self.stopping = asyncio.Event()

    async def run(self) -> None:
        """Run until SIGINT, SIGTERM or `stop`; returns when every process has ended."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self.stop)
        async with asyncio.TaskGroup() as group:
            for part in self.parts:
                group.create_task(self.keep(part))

    def stop(self) -> None:
        """Begin to end everything; more calls change nothing."""
        if not self.stopping.is_set():
            self.stream.write("up", "stopping")
            self.stopping.set()

    async def keep(self, part: Part) -> None:
        """Start `part`, and again whenever it ends, slower each time that it ends soon."""
        delay = FIRST_DELAY / 2
        while not self.stopping.is_set():
            started = time.monotonic()
            code = await self.run_once(part)
            if self.stopping.is_set():
                return
            delay = next_delay(delay, time.monotonic() - started)
            self.stream.write("up", f"{part.name} {describe_end(code)}; starting it again in {delay:g} s")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), delay)

    async def run_once(self, part: Part) -> int:
        """Run the process to its end, or to ours."""
        # A pipe of our own: asyncio's `wait` would go on for as long as a grandchild holds one that it made.
        reading, writing = os.pipe()
        try:
            process = await self.start(part, writing)
        finally:
            os.close(writing)
        self.stream.write("up", f"{part.name} runs as process {process.pid}")
        copying = asyncio.create_task(self.copy_output(part.name, reading))
        code = await self.wait_or_end(process)
        # What the process left running in its group may still hold its port.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.wait({copying}, timeout=LAST_WORDS_SECONDS)
        copying.cancel()
        return code

    @staticmethod
    async def start(part: Part, output: int) -> asyncio.subprocess.Process:
        """Start the process with both its streams going to the descriptor `output`."""
        return await asyncio.create_subprocess_exec(
            *part.command,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **part.environment},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=tuple(part.files),
            # A group of its own: Ctrl-C in the terminal reaches only the supervisor, which ends things in order.
            start_new_session=True,
            preexec_fn=partial(end_with_parent, part.end_by),
        )

    async def copy_output(self, name: str, descriptor: int) -> None:
        """Pass on what comes through the pipe until all its writers have closed it."""
        reader = asyncio.StreamReader()
        pipe = os.fdopen(descriptor, "rb", buffering=0)
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        with contextlib.closing(transport):
            await self.stream.copy(name, reader)

    async def wait_or_end(self, process: asyncio.subprocess.Process) -> int:
        """Wait for the end; once we are stopping, ask for it, and after the grace time insist."""
        ended = asyncio.create_task(process.wait())
        stopping = asyncio.create_task(self.stopping.wait())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await asyncio.wait({ended}, timeout=self.grace)
        if not ended.done():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        return await ended
