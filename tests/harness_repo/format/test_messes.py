"""Real repositories are a mess: each mess is found by code and line, and everything else is read."""

import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness_repo.folder import read_source
from harness_repo.format.adoption import propose_harness
from harness_repo.format.harness import Harness, read_harness
from harness_repo.snapshot import Snapshot
from tests.harness_repo import messes
from tests.harness_repo.build import FILES


def found(harness: Harness) -> set[tuple[str, str, int]]:
    return {(problem.path, problem.code, problem.line) for problem in harness.problems}


@pytest.mark.parametrize("ref", [None, "HEAD", "trunk"])
def test_each_mess_of_a_repository_is_found_by_code_and_line(tmp_path: Path, ref: str | None) -> None:
    messes.commit_messes(tmp_path)
    harness = read_harness(read_source(tmp_path, ref).snapshot)
    assert found(harness) == messes.EXPECTED_COMMITTED
    assert set(harness.skills) == messes.READ


def test_each_mess_of_a_folder_is_found_by_code_and_line(tmp_path: Path) -> None:
    messes.write_messes(tmp_path)
    harness = read_harness(read_source(tmp_path).snapshot)
    assert found(harness) == messes.EXPECTED
    assert set(harness.skills) == messes.READ


def test_a_bare_repository_is_read_at_its_head(tmp_path: Path) -> None:
    messes.commit_messes(tmp_path / "work")
    shutil.move(tmp_path / "work" / ".git", tmp_path / "bare.git")
    source = read_source(tmp_path / "bare.git")
    assert len(source.commit) == 40
    assert found(read_harness(source.snapshot)) == messes.EXPECTED_COMMITTED


def test_an_adopted_mess_is_as_good_as_its_skills() -> None:
    snapshot = Snapshot(messes.FILES, messes.LINKS, messes.SUBMODULES)
    proposed = propose_harness(snapshot, "mess")
    before = read_harness(snapshot)
    after = read_harness(Snapshot({**messes.FILES, **proposed}, messes.LINKS, messes.SUBMODULES))
    added = found(after) - found(before)
    # Only in a harness is a folder beside the skills meant to be one.
    assert added == {("skills/case/notes.md", "skill_file_missing", 0)}
    assert set(after.skills) == messes.READ


paths = st.lists(
    st.sampled_from(
        ["skills", "a", "b", "A", "SKILL.md", "skill.md", "harness.yaml", "prompts", "x.yaml", "商", ".g"]
    )
    | st.text(max_size=3).filter(lambda text: "/" not in text and text != ""),
    min_size=1,
    max_size=4,
).map("/".join)
contents = (
    st.binary(max_size=80)
    | st.sampled_from([messes.GOOD, *FILES.values()])
    | st.tuples(st.sampled_from(list(FILES.values())), st.integers(0, 200), st.binary(max_size=4)).map(
        lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :]
    )
)
snapshots = st.builds(
    Snapshot,
    files=st.dictionaries(paths | st.sampled_from(list(FILES)), contents, max_size=8),
    links=st.dictionaries(
        paths, st.text(max_size=8) | st.sampled_from(["..", "../..", "/", "a/../..", "b"]), max_size=3
    ),
    submodules=st.dictionaries(paths, st.just("0" * 40), max_size=2),
    skipped=st.dictionaries(paths, st.just("a socket"), max_size=1),
)


@given(snapshots)
def test_whatever_stands_in_a_tree_is_read_and_problems_point_into_it(snapshot: Snapshot) -> None:
    harness = read_harness(snapshot)
    known = {*snapshot.files, *snapshot.links, *snapshot.submodules, *snapshot.skipped, "harness.yaml"}
    for problem in harness.problems:
        assert problem.path in known
        assert problem.code
        assert problem.message
        assert 0 <= problem.line <= lines_of(snapshot.files.get(problem.path, b""))


def lines_of(data: bytes) -> int:
    """Line ends of any encoding: an upper limit for the number of the last line."""
    return data.count(b"\n") + data.count(b"\r") + 1


@given(snapshots)
def test_reading_twice_says_the_same(snapshot: Snapshot) -> None:
    assert read_harness(snapshot) == read_harness(snapshot)


FRONT = b"---\nname: a\ndescription: D\n"
# Each of them took minutes where the work grew with the square of the size.
HOSTILE: dict[str, Callable[[int], Snapshot]] = {
    "brackets": lambda size: Snapshot({"harness.yaml": b"a: " + b"[" * 30_000 * size}),
    "marks": lambda size: Snapshot(
        {"skills/a/SKILL.md": FRONT + b"x: " + b"| {" * 10_000 * size + b"\n---\n"}
    ),
    "keys": lambda size: Snapshot({"harness.yaml": b"".join(b"k%d: 1\n" % n for n in range(2000 * size))}),
    "links": lambda size: Snapshot(
        {}, links={f"x{number}": f"x{number + 1}/" + "a/../" * 190 for number in range(300 * size)}
    ),
    "target": lambda size: Snapshot({}, links={"a": "a/" * 250_000 * size}),
    "depth": lambda size: Snapshot({"a/" * 250_000 * size + "SKILL.md": messes.GOOD}),
    "nested": lambda size: Snapshot(
        {f"{'a/' * 60}b{number}/assets/c/SKILL.md": messes.GOOD for number in range(100 * size)}
    ),
}


def count_calls(snapshot: Snapshot) -> int:
    """How many functions are called, of Python and of C, while a tree is read."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        problems = read_harness(snapshot).problems
    finally:
        sys.setprofile(before)
    assert problems
    return calls


@pytest.mark.parametrize("name", HOSTILE)
def test_the_work_on_a_hostile_tree_grows_no_faster_than_the_tree(name: str) -> None:
    make = HOSTILE[name]
    # Whatever is kept from the first time.
    count_calls(make(1))
    assert count_calls(make(2)) < 2.5 * count_calls(make(1))


@pytest.mark.parametrize(
    "snapshot",
    [
        Snapshot({"skills/a/SKILL.md": FRONT + b"allowed-tools: " + b"a(" * 30_000 + b"\n---\n"}),
        Snapshot({".gitmodules": b"path=" + b" " * 3_000_000 + b"x"}, submodules={"a": "0" * 40}),
    ],
)
def test_a_hostile_text_keeps_no_pattern_busy(snapshot: Snapshot) -> None:
    # One call of a pattern cannot be counted: the processor's own time, of which others on it take nothing.
    start = time.process_time()
    assert read_harness(snapshot).problems
    assert time.process_time() - start < 10
