"""Two processes that write at once: none of their work is lost without an error."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path

from harness_repo.git.errors import RepoExists, StaleBase
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import run_git

BRANCHES = 200
AUTHOR = Author("a", "a@example.org")

processes_of = multiprocessing.get_context("fork")


def write_branches(path: Path, who: str, barrier: Barrier) -> None:
    repo = HarnessRepository(path)
    barrier.wait()
    for number in range(BRANCHES):
        edits = {f"{who}/{number}": b"x", "shared": who.encode()}
        repo.commit(f"p/{who}-{number}", edits, parent="main", author=AUTHOR, message="m")


def race_for_main(path: Path, who: str, barrier: Barrier, outcomes: "multiprocessing.Queue[str]") -> None:
    repo = HarnessRepository(path)
    base = repo.resolve("main")
    new = repo.commit(f"p/{who}", {who: b"x"}, parent=base, author=AUTHOR, message="m")
    barrier.wait()
    try:
        repo.advance_main(new, expected=base)
        outcomes.put(new)
    except StaleBase:
        outcomes.put("stale")


def race_to_create(path: Path, who: str, barrier: Barrier, outcomes: "multiprocessing.Queue[str]") -> None:
    barrier.wait()
    try:
        HarnessRepository.create(path, {"who": who.encode()}, author=AUTHOR, message=who)
        outcomes.put(who)
    except RepoExists:
        outcomes.put("taken")


def run_both(target: Callable[..., None], path: Path, *extra: object) -> None:
    barrier = processes_of.Barrier(2)
    processes = [
        processes_of.Process(target=target, args=(path, who, barrier, *extra)) for who in ("one", "two")
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0]


def test_two_writers_of_branches_lose_nothing(repo: HarnessRepository) -> None:
    run_both(write_branches, repo.path)
    assert len(repo.branches()) == 1 + 2 * BRANCHES
    assert run_git(repo.path, "fsck", "--strict") == b""


def test_of_two_that_promote_at_once_one_is_told_it_is_stale(repo: HarnessRepository) -> None:
    outcomes = processes_of.Queue()
    run_both(race_for_main, repo.path, outcomes)
    stale, winner = sorted([outcomes.get(timeout=5), outcomes.get(timeout=5)], key=len)
    assert stale == "stale"
    assert repo.resolve("main") == winner


def test_of_two_that_create_at_once_one_makes_the_whole_repository(tmp_path: Path) -> None:
    outcomes = processes_of.Queue()
    run_both(race_to_create, tmp_path / "new.git", outcomes)
    told = {outcomes.get(timeout=5), outcomes.get(timeout=5)}
    winner = (told - {"taken"}).pop()
    assert "taken" in told
    assert HarnessRepository(tmp_path / "new.git").files("main") == {"who": winner.encode()}
    assert [entry.name for entry in tmp_path.iterdir()] == ["new.git"]
