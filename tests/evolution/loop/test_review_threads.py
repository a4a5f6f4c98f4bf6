from pathlib import Path

import pytest

from evolution.errors import LoopError
from evolution.loop.review_threads import follow_line, read_line
from harness_repo.git.diffs import parse_diff
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository

BY = Author("t", "t@example.org")
LINES = [f"line {n}" for n in range(1, 31)]
PATH = "a.md"


@pytest.fixture
def repository(tmp_path: Path) -> HarnessRepository:
    files = {PATH: write(LINES), "b.md": b"b\n"}
    return HarnessRepository.create(tmp_path / "r.git", files, author=BY, message="first")


def write(lines: list[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def follow(
    repository: HarnessRepository, edits: dict[str, bytes | None], line: int
) -> tuple[str, int] | None:
    base = repository.resolve("main")
    head = repository.commit("x", edits, parent=base, author=BY, message="m")
    return follow_line(parse_diff(repository.diff(base, head)), PATH, line)


def test_a_line_of_an_untouched_file_stays(repository: HarnessRepository) -> None:
    assert follow(repository, {"b.md": b"c\n"}, 7) == (PATH, 7)


@pytest.mark.parametrize("line", [-5, -1, 99])
def test_a_line_that_is_not_there_is_not_read(repository: HarnessRepository, line: int) -> None:
    with pytest.raises(LoopError):
        read_line(repository, repository.resolve("main"), PATH, line)


@pytest.mark.parametrize("line", [1, 4, 5, 6, 8, 20, 30])
def test_every_line_that_stays_is_found_by_its_text(repository: HarnessRepository, line: int) -> None:
    after = ["top", *LINES[:4], "between", "between 2", *LINES[4:6], *LINES[7:18], "low", *LINES[18:]]

    found = follow(repository, {PATH: write(after)}, line)

    assert found is not None
    assert after[found[1] - 1] == LINES[line - 1]


def test_a_line_that_was_changed_is_gone(repository: HarnessRepository) -> None:
    assert follow(repository, {PATH: write([*LINES[:6], "other", *LINES[7:]])}, 7) is None


def test_a_line_that_moved_is_found_at_its_new_place(repository: HarnessRepository) -> None:
    after = [*LINES[:2], *LINES[3:25], "  line 3", *LINES[25:]]

    assert follow(repository, {PATH: write(after)}, 3) == (PATH, 25)


def test_a_line_that_moved_to_two_places_is_gone(repository: HarnessRepository) -> None:
    after = [*LINES[:2], *LINES[3:25], "line 3", "line 3", *LINES[25:]]

    assert follow(repository, {PATH: write(after)}, 3) is None


@pytest.mark.parametrize(("line", "found"), [(7, 8), (0, 0)])
def test_a_renamed_file_takes_its_lines_along(repository: HarnessRepository, line: int, found: int) -> None:
    assert follow(repository, {PATH: None, "c.md": write(["top", *LINES])}, line) == ("c.md", found)


def test_a_deleted_file_takes_its_threads_out_of_the_diff(repository: HarnessRepository) -> None:
    assert follow(repository, {PATH: None}, 0) is None
