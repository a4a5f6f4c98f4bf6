"""A writer that dies, at whatever point, leaves a repository that reads well and takes the next write."""

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness_repo.git.errors import BadRef, RepoBusy, StaleBase
from harness_repo.git.locks import LOCK_NAME, writer_lock
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import FILES, run_git

AUTHOR = Author("a", "a@example.org")
ROOT = Path(__file__).parents[3]
# One branch, moved over and over, and another that comes and goes: locks on loose and on packed refs.
WRITER = """
import sys
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
repo, author, head = HarnessRepository(sys.argv[1]), Author("w", "w@example.org"), sys.argv[2]
print("ready", flush=True)
for number in range(100000):
    head = repo.commit("b", {"f": b"%d" % number}, parent=head, author=author, message="m", expected_head=head)
    repo.commit("c", {"f": b"x%d" % number}, parent="main", author=author, message="m")
    repo.delete_branch("c")
"""


def write(repo: HarnessRepository, text: str) -> str:
    head = repo.resolve("b")
    edits = {"after": text.encode()}
    return repo.commit("b", edits, parent=head, author=AUTHOR, message=text, expected_head=head)


def kill_writer(repo: HarnessRepository, seconds: float) -> None:
    """Start a process that writes without end, and kill it and its git after so long."""
    command = [sys.executable, "-c", WRITER, str(repo.path), repo.resolve("b")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(seconds)
        for child in children_of(process.pid):
            os.kill(child, signal.SIGKILL)
        process.kill()


def children_of(pid: int) -> list[int]:
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def test_after_kill_9_at_random_points_the_next_write_works(repo: HarnessRepository) -> None:
    repo.commit("b", {"f": b"0"}, parent="main", author=AUTHOR, message="m")
    run_git(repo.path, "pack-refs", "--all")
    chance = random.Random(3)  # noqa: S311  the same points in every run
    for number in range(12):
        kill_writer(repo, 0.02 + chance.random() * 0.08)
        began = time.monotonic()
        assert repo.read_file("b", "f")
        head = write(repo, f"after {number}")
        if "c" in repo.branches():
            repo.delete_branch("c")
        assert time.monotonic() - began < 4
        assert repo.read_file(head, "after") == f"after {number}".encode()
    assert run_git(repo.path, "fsck", "--strict", "--no-dangling") == b""


@pytest.mark.parametrize(
    "name", ["refs/heads/b.lock", "HEAD.lock", "packed-refs.lock", "packed-refs.new", "gc.pid.lock"]
)
def test_a_lock_that_a_dead_writer_announced_is_taken_away(repo: HarnessRepository, name: str) -> None:
    repo.commit("b", {"f": b"0"}, parent="main", author=AUTHOR, message="m")
    run_git(repo.path, "pack-refs", "--all")
    (repo.path / name).parent.mkdir(parents=True, exist_ok=True)
    (repo.path / name).touch()
    (repo.path / LOCK_NAME).write_text("refs/heads/b\ngc.pid")
    repo.delete_branch("b")
    assert list(repo.branches()) == ["main"]
    assert not (repo.path / name).exists()
    assert (repo.path / LOCK_NAME).read_text() == ""


@pytest.mark.usefixtures("impatient_git")
def test_an_old_lock_of_an_unknown_git_is_taken_away_and_a_young_one_is_not(repo: HarnessRepository) -> None:
    repo.commit("b", {"f": b"0"}, parent="main", author=AUTHOR, message="m")
    lock = repo.path / "refs/heads/b.lock"
    lock.touch()
    with pytest.raises(RepoBusy):
        write(repo, "too early")
    assert lock.exists()
    os.utime(lock, (time.time() - 60, time.time() - 60))
    write(repo, "late enough")
    assert not lock.exists()


def test_a_writer_that_waits_too_long_is_told(repo: HarnessRepository) -> None:
    with writer_lock(repo.path), pytest.raises(RepoBusy), writer_lock(repo.path, seconds=0.1):
        pass


def sleep_in_child() -> None:
    time.sleep(30)


def test_a_process_that_is_forked_meanwhile_does_not_keep_the_lock(repo: HarnessRepository) -> None:
    child = multiprocessing.get_context("fork").Process(target=sleep_in_child)
    with writer_lock(repo.path):
        child.start()
    try:
        with writer_lock(repo.path, seconds=5):
            assert child.is_alive()
    finally:
        child.kill()
        child.join()


def test_a_git_that_outlives_its_program_keeps_the_lock(repo: HarnessRepository) -> None:
    with writer_lock(repo.path) as lock:
        process = subprocess.Popen(["sleep", "30"], pass_fds=(lock.descriptor,))
    try:
        with pytest.raises(RepoBusy), writer_lock(repo.path, seconds=0.2):
            pass
    finally:
        process.kill()
        process.wait()
    with writer_lock(repo.path, seconds=5):
        pass


@pytest.mark.parametrize("is_packed", [False, True])
@pytest.mark.parametrize(
    "name", ["proposal/1", "Proposal/1-x", "proposal/1-X", "proposal/1-x/y", "MAIN", "proposal/1-é/y"]
)
def test_a_name_in_another_s_way_is_refused(repo: HarnessRepository, name: str, *, is_packed: bool) -> None:
    for taken in ("proposal/1/a", "proposal/1-x", "proposal/1-e\u0301"):
        repo.commit(taken, {"a": b"1"}, parent="main", author=AUTHOR, message="m")
    if is_packed:
        run_git(repo.path, "pack-refs", "--all")
    with pytest.raises(BadRef) as caught:
        repo.commit(name, {"a": b"1"}, parent="main", author=AUTHOR, message="m")
    assert not isinstance(caught.value, StaleBase)
    assert name not in repo.branches()


def test_threads_share_a_repository(repo: HarnessRepository) -> None:
    def work(number: int) -> bytes:
        sha = repo.commit(f"p/{number}", {"f": b"%d" % number}, parent="main", author=AUTHOR, message="m")
        return repo.read_file(sha, "f")

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(40))) == [b"%d" % number for number in range(40)]
    assert len(repo.branches()) == 41
    assert repo.files("main") == FILES


def test_a_lock_that_a_living_git_took_meanwhile_is_left(
    repo: HarnessRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = repo.path / "refs/heads/main.lock"
    lock.write_text("of a dead one")
    (repo.path / LOCK_NAME).write_text("refs/heads/main")

    def take(_seconds: float) -> None:
        lock.unlink()
        lock.write_text("of a living one")

    with monkeypatch.context() as patch:
        patch.setattr(time, "sleep", take)
        with writer_lock(repo.path):
            assert lock.read_text() == "of a living one"


def test_names_that_differ_by_case_are_found_among_many_packed_ones(repo: HarnessRepository) -> None:
    head = repo.resolve("main")
    with (repo.path / "packed-refs").open("w") as file:
        file.writelines(f"{head} refs/heads/proposal/{number:06}-Ä\n" for number in range(30_000))
    for name in ("Proposal/x", "proposal/000001-ä", "proposal/000001-A\u0308"):
        with pytest.raises(BadRef):
            repo.commit(name, {"a": b"1"}, parent="main", author=AUTHOR, message="m")
    assert repo.commit("proposal/new", {"a": b"1"}, parent="main", author=AUTHOR, message="m")
