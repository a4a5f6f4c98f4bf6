import asyncio
import io
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from workbench.supervisor import LONGEST_DELAY, LogStream, Part, Supervisor, describe_end, next_delay

SLEEPER = "import time; print('up', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
PARENT = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid, flush=True); sys.exit(3)"


def part(code: str, name: str = "part") -> Part:
    return Part(name, [sys.executable, "-I", "-S", "-c", code])


async def run_until(supervisor: Supervisor, out: io.StringIO, text: str, times: int = 1) -> str:
    """Run the supervisor until `text` was said, then stop it; return all that was said."""
    running = asyncio.create_task(supervisor.run())
    deadline = time.monotonic() + 20
    while out.getvalue().count(text) < times:
        assert time.monotonic() < deadline, out.getvalue()
        await asyncio.sleep(0.02)
    supervisor.stop()
    await running
    return out.getvalue()


def supervise(*parts: Part, grace: float = 10.0) -> tuple[Supervisor, io.StringIO]:
    out = io.StringIO()
    return Supervisor(parts, LogStream(out, [p.name for p in parts]), grace=grace), out


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be reaped by init does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_lines_of_both_streams_carry_the_name() -> None:
    code = "import sys, time; print('to out', flush=True); print('to err', file=sys.stderr, flush=True); time.sleep(9)"
    supervisor, out = supervise(part(code, "web"), part(SLEEPER, "worker"))
    said = await run_until(supervisor, out, "to err")
    assert "web    | to out\n" in said
    assert "web    | to err\n" in said


async def test_a_part_that_ends_is_started_again() -> None:
    supervisor, out = supervise(part("print('hello'); raise SystemExit(3)"))
    said = await run_until(supervisor, out, "hello", times=2)
    assert "part ended with code 3; starting it again in 0.5 s" in said


async def test_stopping_is_quick_while_a_restart_waits() -> None:
    supervisor, out = supervise(part("raise SystemExit(3)"))
    supervisor.stream.width = 1
    before = time.monotonic()
    await run_until(supervisor, out, "starting it again")
    assert time.monotonic() - before < 5


async def test_a_part_that_ignores_sigterm_is_killed_after_the_grace_time() -> None:
    supervisor, out = supervise(part(STUBBORN), grace=0.3)
    before = time.monotonic()
    await run_until(supervisor, out, "| up")
    assert time.monotonic() - before < 10


async def test_what_a_part_leaves_behind_is_ended() -> None:
    supervisor, out = supervise(part(PARENT))
    said = await run_until(supervisor, out, "ended with code 3")
    left = int(next(line.split("| ")[1] for line in said.splitlines() if line.startswith("part | ")))
    await asyncio.sleep(0.1)
    assert not is_alive(left)


async def test_sigterm_stops_it() -> None:
    supervisor, out = supervise(part(SLEEPER))
    asyncio.get_running_loop().call_later(0.5, os.kill, os.getpid(), signal.SIGTERM)
    await supervisor.run()
    assert out.getvalue().endswith("up   | stopping\n")


async def test_a_line_longer_than_any_buffer_comes_through() -> None:
    supervisor, out = supervise(part("print('x' * 300_000 + 'end', flush=True); import time; time.sleep(9)"))
    said = await run_until(supervisor, out, "xend")
    assert max(len(line) for line in said.splitlines()) > 300_000


async def test_following_a_file_starts_at_its_end(tmp_path: Path) -> None:
    out = io.StringIO()
    log = tmp_path / "log"
    log.write_text("old\n")
    following = asyncio.create_task(LogStream(out, ["db"]).follow("db", log))
    await asyncio.sleep(0.1)
    with log.open("a") as file:
        file.write("new\n")
    await asyncio.sleep(1)
    following.cancel()
    assert out.getvalue() == "db | new\n"


def test_restarts_slow_down_and_never_stop() -> None:
    delay, delays = 0.25, []
    for _ in range(10):
        delay = next_delay(delay, lived=1.0)
        delays.append(delay)
    assert delays[:3] == [0.5, 1.0, 2.0]
    assert delays[-1] == LONGEST_DELAY
    assert next_delay(LONGEST_DELAY, lived=3600.0) == 0.5


@pytest.mark.parametrize(("code", "words"), [(1, "ended with code 1"), (-9, "was killed by SIGKILL")])
def test_ends_are_described(code: int, words: str) -> None:
    assert describe_end(code) == words
