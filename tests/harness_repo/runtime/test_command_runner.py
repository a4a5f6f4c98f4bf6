"""Real programs: each test writes an agent into the files of a version, and runs it."""

import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_repo.format.json_schema import find_violation, load_schema
from harness_repo.git.errors import MissingRef
from harness_repo.runtime import command_runner, run_folder
from harness_repo.runtime.command_runner import CommandRunner, CommandSettings
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import Trajectory
from harness_repo.snapshot import Snapshot

COMMIT = "c" * 40
CASE = RunCase(
    "k1",
    {"danmaku": [{"user": "小美", "text": "多少钱？"}], "user": {"persona": "p", "goal": "secret goal"}},
    {"room": {"name": "r"}},
    {"price": [{"arguments": {}, "result": 9}]},
    [{"kind": "timeout"}],
    COMMIT,
    2,
    7,
)


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where runs have their folders; nothing may be left there."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield tmp_path
    assert list(tmp_path.glob("harness-run-*")) == []


def make_runner(agent: str, *arguments: str, **settings: Any) -> CommandRunner:
    files = {"agent.py": agent.encode(), "skills/a/SKILL.md": b"body"}
    command = (sys.executable, "-S", "agent.py", *arguments)
    return CommandRunner(CommandSettings(command, **settings), lambda _commit: Snapshot(files))


async def run(agent: str, *arguments: str, **settings: Any) -> Trajectory:
    return await make_runner(agent, *arguments, **settings).run(CASE)


def read_stat(pid: int | str) -> list[str]:
    """State, parent, ... of a process, as /proc has them; nothing when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


def is_running(pid: int) -> bool:
    return read_stat(pid)[:1] not in ([], ["Z"])


def list_zombies() -> set[str]:
    """Children of this process that have ended and that nobody has waited for."""
    numbers = [path.name for path in Path("/proc").glob("[0-9]*")]
    return {number for number in numbers if read_stat(number)[:2] == ["Z", str(os.getpid())]}


async def test_case_stands_on_stdin_and_a_reply_is_enough() -> None:
    got = await run("import sys, json; print(json.dumps({'reply': sys.stdin.read()}))")
    assert (got.status, got.error, got.runner) == (
        "ok",
        None,
        {"kind": "command", "exit_code": 0, "stderr": ""},
    )
    seen = json.loads(got.reply or "")
    assert find_violation(load_schema("case"), seen) is None
    assert seen == CASE.to_dict()
    assert "secret goal" not in (got.reply or "")


async def test_trajectory_is_taken_with_its_calls_and_times() -> None:
    made = {
        "format": "trajectory/1",
        "status": "turn_limit",
        "reply": "r",
        "tool_calls": [{"name": "price", "arguments": {"id": 1}, "result": {"price": 9}, "ms": 5}],
        "usage": {"prompt_tokens": 3},
        "latency_ms": 12.5,
    }
    got = await run(f"print({json.dumps(made)!r})")
    assert (got.status, got.latency_ms, got.usage.prompt_tokens) == ("turn_limit", 12.5, 3)
    assert got.evidence() == [{"tool": "price", "arguments": {"id": 1}, "result": {"price": 9}}]


async def test_time_is_measured_from_outside_where_the_agent_gives_none() -> None:
    got = await run('import time; time.sleep(0.2); print(\'{"reply": "r"}\')')
    assert 200 <= got.latency_ms < 5000


async def test_files_of_the_version_are_the_working_directory_and_home() -> None:
    got = await run(
        "import os, json, pathlib\n"
        "pathlib.Path('skills/a/SKILL.md').write_text('changed')\n"
        "print(json.dumps({'reply': json.dumps([os.getcwd(), os.environ['HOME'], os.environ['TMPDIR']])}))"
    )
    here, home, scratch = json.loads(got.reply or "")
    assert here == home != scratch
    # The fixture sees to it that nothing is left.
    assert Path(here).parent == Path(scratch).parent


async def test_environment_is_clean_but_for_what_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANTED", "yes")
    monkeypatch.setenv("SECRET_KEY", "no")
    got = await run(
        "import os, json; print(json.dumps({'reply': json.dumps(dict(os.environ))}))",
        environment=("WANTED", "NOT_SET"),
    )
    seen = json.loads(got.reply or "")
    # Python sets LC_CTYPE itself in a C locale.
    assert set(seen) - {"LC_CTYPE"} == {"PATH", "HOME", "TMPDIR", "LANG", "WANTED"}
    assert seen["WANTED"] == "yes"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows a process's environment as a file")
def test_nothing_of_the_worker_stands_where_a_parent_is_looked_up() -> None:
    agent = (
        "import json, os\n"
        "parent = open(f'/proc/{os.getppid()}/stat').read().rpartition(')')[2].split()[1]\n"
        "try: seen = open(f'/proc/{os.getppid()}/environ').read()\n"
        "except OSError: seen = 'closed'\n"
        "print(json.dumps({'reply': json.dumps([seen, parent, os.getppid()])}))"
    )
    code = WORKER.replace("asyncio.run(", "print(asyncio.run(").replace(
        'RunCase("k", {})))', 'RunCase("k", {}))).reply)'
    )
    worker = subprocess.run(
        [sys.executable, "-c", code + DUMPABLE, agent],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "DATABASE_PASSWORD": "hunter2"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    said, dumpable = worker.stdout.decode().split("\n")[:2]
    seen, grandparent, parent = json.loads(said)
    assert "hunter2" not in seen
    # The worker stands behind the launcher, and the kernel shows its environment to nobody without CAP_SYS_PTRACE.
    assert int(grandparent) != parent
    assert dumpable == "0"


async def test_values_of_credentials_that_are_passed_on_stand_nowhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1234567890/abc")
    monkeypatch.setenv("REGION", "eu-west-1")
    agent = (
        "import json, os, sys\n"
        "key = os.environ['OPENAI_API_KEY']\n"
        "print('x' * 3990 + key, file=sys.stderr)\n"
        "print(json.dumps({'reply': 'eu-west-1 ' + key, 'tool_calls': [{'name': 't', 'result': {key: [key]}}]}))"
    )
    got = await run(agent, environment=("OPENAI_API_KEY", "REGION"))
    assert (got.status, got.reply) == ("ok", "eu-west-1 ***")
    assert got.tool_calls[0].result == {"***": ["***"]}
    assert "1234567" not in json.dumps(got.to_dict())
    assert "67890" not in got.runner["stderr"]


@pytest.mark.parametrize(
    ("agent", "error"),
    [
        ("print('hello')", "standard output is no trajectory: Expecting value"),
        ("pass", "standard output is no trajectory: empty"),
        ("import sys; sys.stdout.buffer.write(b'\\xff{}')", "not UTF-8"),
        ("print('{\"reply\": 5}')", "no trajectory: "),
        ("print('{}')", "no trajectory: "),
        ("print('{\"reply\": NaN}')", "NaN is not JSON"),
        ("print('[' * 100000)", "nested too deeply"),
        ('print(\'{"reply": "a"} {"reply": "b"}\')', "Extra data"),
        ("import os; os.kill(os.getpid(), 11)", "ended by SIGSEGV"),
        ("import os; os.kill(os.getpid(), 35)", "ended by signal 35"),
        ("import sys; print('no key', file=sys.stderr); sys.exit(3)", "exit code 3: no key"),
    ],
)
async def test_what_is_no_answer_is_an_error_of_the_runner(agent: str, error: str) -> None:
    got = await run(agent)
    assert (got.status, got.reply) == ("runner_error", None)
    assert error in (got.error or "")


async def test_answer_of_a_program_that_failed_is_kept_as_an_error() -> None:
    got = await run("print('{\"reply\": \"half\"}', flush=True); raise SystemExit('lost the rest')")
    assert (got.status, got.reply, got.error) == ("runner_error", "half", "exit code 1: lost the rest")
    assert got.runner == {"kind": "command", "exit_code": 1, "stderr": "lost the rest"}


async def test_warnings_are_kept_with_a_good_answer_and_only_their_end() -> None:
    got = await run("import sys; print('x' * 10**6 + 'end', file=sys.stderr); print('{\"reply\": \"r\"}')")
    assert (got.status, got.error) == ("ok", None)
    assert got.runner["stderr"].endswith("xend")
    assert len(got.runner["stderr"]) <= command_runner.STDERR_BYTES


async def test_command_that_is_not_there() -> None:
    runner = CommandRunner(CommandSettings(("no-such-command",)), lambda _commit: Snapshot({}))
    got = await runner.run(CASE)
    assert (got.status, got.runner["exit_code"]) == ("runner_error", 127)
    assert "cannot start no-such-command: No such file" in (got.error or "")


async def test_version_that_is_not_there() -> None:
    def missing(commit: str) -> Snapshot:
        raise MissingRef(f"no commit {commit}")

    got = await CommandRunner(CommandSettings(("true",)), missing).run(CASE)
    assert (got.status, got.error) == ("runner_error", f"cannot be run: no commit {COMMIT}")


FORKS = """
import os, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"])
print(os.getpid(), child.pid, file=sys.stderr, flush=True)
"""


async def test_time_out_kills_the_whole_group() -> None:
    began = time.monotonic()
    got = await run(FORKS + "time.sleep(60)", seconds=1.0)
    assert time.monotonic() - began < 10
    assert (got.status, got.reply) == ("time_limit", None)
    assert (got.error or "").startswith("not done after 1 seconds: ")
    assert [pid for pid in map(int, got.runner["stderr"].split()) if is_running(pid)] == []


async def test_what_a_finished_agent_leaves_running_is_killed() -> None:
    began = time.monotonic()
    got = await run(FORKS + 'print(\'{"reply": "r"}\')')
    assert time.monotonic() - began < 10
    assert (got.status, got.reply) == ("ok", "r")
    assert [pid for pid in map(int, got.runner["stderr"].split()) if is_running(pid)] == []


async def test_daemon_that_holds_the_pipes_is_killed_and_does_not_hold_the_run() -> None:
    agent = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); print(os.getpid(), file=sys.stderr, flush=True); time.sleep(8); os._exit(0)\n"
        'time.sleep(0.3); print(\'{"reply": "r"}\')'
    )
    began = time.monotonic()
    got = await run(agent)
    assert time.monotonic() - began < 5
    assert (got.status, got.reply) == ("ok", "r")
    assert not is_running(int(got.runner["stderr"]))


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), file=sys.stderr, flush=True)
        time.sleep(60)
    os._exit(0)
os.wait()
time.sleep(0.3)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to the launcher")
@pytest.mark.parametrize(
    ("end", "status"), [('print(\'{"reply": "r"}\')', "ok"), ("time.sleep(60)", "time_limit")]
)
async def test_daemon_that_nobody_is_the_parent_of_is_killed(end: str, status: str) -> None:
    got = await run(DAEMON + end, seconds=2.0)
    assert got.status == status
    assert not is_running(int(got.runner["stderr"]))


async def test_memory_is_limited() -> None:
    greedy = 'x = bytearray(400 * 1024**2); print(\'{"reply": "r"}\')'
    got = await run(greedy, memory_mb=128)
    assert (got.status, got.runner["exit_code"]) == ("runner_error", 1)
    assert "MemoryError" in (got.error or "")
    assert (await run(greedy, memory_mb=1024)).reply == "r"


async def test_endless_output_is_cut_and_the_agent_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_runner, "MOST_BYTES", 100_000)
    got = await run("while True: print('x' * 1000)", seconds=60)
    assert (got.status, got.error) == ("runner_error", "more than 100000 bytes on standard output")


async def test_agent_that_does_not_read_the_case_is_no_error() -> None:
    big = RunCase("k", {"danmaku": []}, {"text": "x" * 3_000_000})
    got = await make_runner('import os; os.close(0); print(\'{"reply": "r"}\')').run(big)
    assert (got.status, got.reply) == ("ok", "r")


async def test_many_runs_at_once_keep_apart_and_leave_nothing() -> None:
    before = list_zombies()
    agent = (
        "import json, pathlib, sys\n"
        "key = json.load(sys.stdin)['key']\n"
        "pathlib.Path('note').write_text(key)\n"
        "print(json.dumps({'reply': key + pathlib.Path('note').read_text()}))"
    )
    read: list[str] = []

    def read_snapshot(commit: str) -> Snapshot:
        read.append(commit)
        return Snapshot({"agent.py": agent.encode()})

    runner = CommandRunner(CommandSettings((sys.executable, "-S", "agent.py")), read_snapshot)
    cases = [RunCase(f"k{n}", {}, commit=COMMIT) for n in range(16)]
    got = await asyncio.gather(*map(runner.run, cases))
    assert [one.reply for one in got] == [case.key * 2 for case in cases]
    assert read == [COMMIT]
    assert list_zombies() <= before


@pytest.mark.parametrize("seconds", [0.0, 0.01, 0.05, 0.5])
async def test_cancelled_run_leaves_neither_process_nor_folder(scratch: Path, seconds: float) -> None:
    before = list_zombies()
    note = scratch / "pid"
    agent = (
        f"import os, pathlib, time; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); time.sleep(60)"
    )
    task = asyncio.create_task(make_runner(agent).run(CASE))
    await asyncio.sleep(seconds)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not (note.exists() and is_running(int(note.read_text() or 0)))
    assert list_zombies() <= before


DUMPABLE = """
import ctypes
# PR_GET_DUMPABLE
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""
WORKER = """
import asyncio, sys
from harness_repo.runtime.command_runner import CommandRunner, CommandSettings
from harness_repo.runtime.runner import RunCase
from harness_repo.snapshot import Snapshot
settings = CommandSettings((sys.executable, "-S", "-c", sys.argv[1]))
asyncio.run(CommandRunner(settings, lambda commit: Snapshot({})).run(RunCase("k", {})))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process that its parent has gone")
def test_agent_ends_with_a_worker_that_is_killed(scratch: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = scratch / "pid"
    agent = (
        f"import os, pathlib, time; note = pathlib.Path({str(note)!r}); pid = os.fork()\n"
        "if pid == 0: os.setsid(); time.sleep(60)\n"
        "note.write_text(f'{os.getpid()} {pid}'); time.sleep(60)"
    )
    environment = {**os.environ, "TMPDIR": str(scratch), "PYTHONPATH": os.pathsep.join(sys.path)}
    worker = subprocess.Popen([sys.executable, "-c", WORKER, agent], env=environment)
    wait_until(lambda: note.exists() and note.read_text() != "")
    worker.kill()
    worker.wait()
    wait_until(lambda: not any(is_running(int(pid)) for pid in note.read_text().split()))
    # Nobody is left to clean up but the next worker.
    (folder,) = scratch.glob("harness-run-*")
    monkeypatch.setattr(run_folder, "SECONDS_TO_LOCK", -1.0)
    with contextlib.closing(LockedFolder()) as live:
        run_folder.sweep_folders()
        assert (folder.exists(), live.root.exists()) == (False, True)


class LockedFolder:
    """The folder of a run that is under way."""

    def __init__(self) -> None:
        self._folder = run_folder.RunFolder.make()
        self.root = self._folder.root

    def close(self) -> None:
        self._folder.remove()


def wait_until(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not is_true():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)
