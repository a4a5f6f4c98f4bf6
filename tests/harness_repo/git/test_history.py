import hashlib
import zlib

import pytest

from harness_repo.git.errors import BadPath, MergeConflict, MissingRef, NothingToCommit, StaleBase
from harness_repo.git.objects import Author
from harness_repo.git.repository import Edits, HarnessRepository
from tests.harness_repo.build import run_git

TEXT = b"".join(b"line %d\n" % number for number in range(20))


def put(repo: HarnessRepository, author: Author, edits: Edits, message: str) -> str:
    head = repo.branches().get("b", repo.resolve("main"))
    return repo.commit("b", edits, parent=head, author=author, message=message)


def test_the_history_of_a_file_follows_its_names(repo: HarnessRepository, author: Author) -> None:
    made = put(repo, author, {"old 名.md": TEXT}, "make")
    put(repo, author, {"other": b"x"}, "elsewhere")
    moved = put(repo, author, {"old 名.md": None, "new.md": TEXT}, "move")
    changed = put(repo, author, {"new.md": TEXT + b"more\n"}, "change\x1f\n\nbody")
    found = [(item.commit.sha, item.path, item.status, item.old_path) for item in repo.history("new.md", "b")]
    assert found == [
        (changed, "new.md", "modified", None),
        (moved, "new.md", "renamed", "old 名.md"),
        (made, "old 名.md", "added", None),
    ]
    assert repo.history("new.md", "b")[0].commit.message == "change\x1f\n\nbody"
    plain = run_git(repo.path, "log", "--follow", "--format=%H", "b", "--", "new.md").decode().split()
    assert [item[0] for item in found] == plain


def test_the_history_knows_a_removal_and_its_limit(repo: HarnessRepository, author: Author) -> None:
    put(repo, author, {"f": b"1"}, "one")
    gone = put(repo, author, {"f": None}, "gone")
    assert [(item.commit.sha, item.status) for item in repo.history("f", "b", 1)] == [(gone, "removed")]
    assert repo.history("never/there", "b") == []
    with pytest.raises(BadPath):
        repo.history("../f")
    with pytest.raises(MissingRef):
        repo.history("f", "nowhere")


def test_a_path_is_no_pattern(repo: HarnessRepository, author: Author) -> None:
    put(repo, author, {"a*.md": b"1", "ab.md": b"1"}, "both")
    put(repo, author, {"ab.md": b"2"}, "other")
    assert len(repo.history("a*.md", "b")) == 1
    assert repo.diff("main", "b", ["a*.md"]).count("diff --git") == 1


def test_the_history_goes_through_a_merge(repo: HarnessRepository, author: Author) -> None:
    one = repo.commit("p/1", {"f": b"1\n"}, parent="main", author=author, message="one")
    two = repo.commit("p/2", {"g": b"1\n"}, parent="main", author=author, message="two")
    step = repo.merge("step/1", "main", [one, two], author=author, message="step")
    assert [item.commit.sha for item in repo.history("g", step)] == [two]


def test_the_change_of_a_commit_is_against_its_first_parent(repo: HarnessRepository, author: Author) -> None:
    first = repo.resolve("main")
    assert repo.change_of(first, ["harness.yaml"]).count("\n+") > 3
    sha = put(repo, author, {"x": b"1\n", "y": b"1\n"}, "m")
    plain = run_git(repo.path, "diff", first, sha, "--", "x").decode()
    assert repo.change_of(sha, ["x"]) == plain


def test_a_revert_takes_back_one_commit_and_keeps_what_came_after(
    repo: HarnessRepository, author: Author
) -> None:
    put(repo, author, {"f": TEXT}, "make")
    wrong = put(repo, author, {"f": TEXT.replace(b"line 3\n", b"wrong\n"), "extra": b"x"}, "Go wrong")
    head = put(repo, author, {"f": TEXT.replace(b"line 3\n", b"wrong\n") + b"more\n"}, "later")
    sha = repo.revert("b", wrong, expected_head=head, author=author)
    assert repo.read_file("b", "f") == TEXT + b"more\n"
    assert "extra" not in repo.files("b")
    newest = repo.log("b", 1)[0]
    assert (newest.sha, newest.parents, newest.subject) == (sha, (head,), 'Revert "Go wrong"')
    assert f"This reverts commit {wrong}." in newest.message
    assert run_git(repo.path, "fsck", "--strict", "--connectivity-only").count(b"missing") == 0


def test_the_first_commit_can_be_taken_back(repo: HarnessRepository, author: Author) -> None:
    first = repo.resolve("main")
    head = put(repo, author, {"mine": b"x"}, "m")
    repo.revert("b", first, expected_head=head, author=author, message="undo")
    assert repo.files("b") == {"mine": b"x"}


def test_a_merge_is_taken_back_against_its_first_parent(repo: HarnessRepository, author: Author) -> None:
    heads = [
        repo.commit(f"p/{name}", {name: b"1"}, parent="main", author=author, message=name) for name in "xy"
    ]
    step = repo.merge("b", "main", heads, author=author, message="step")
    repo.revert("b", step, expected_head=step, author=author)
    assert "y" not in repo.files("b")
    assert "x" in repo.files("b")


def test_a_revert_of_lines_that_changed_since_is_a_conflict(repo: HarnessRepository, author: Author) -> None:
    put(repo, author, {"f": b"a\n"}, "make")
    wrong = put(repo, author, {"f": b"b\n"}, "wrong")
    head = put(repo, author, {"f": b"c\n"}, "later")
    with pytest.raises(MergeConflict) as caught:
        repo.revert("b", wrong, expected_head=head, author=author)
    assert caught.value.conflicts[0].hunks[0].ours == "c\n"
    assert repo.resolve("b") == head


def test_a_revert_of_what_is_gone_or_on_a_moved_branch_is_refused(
    repo: HarnessRepository, author: Author
) -> None:
    made = put(repo, author, {"f": b"a\n"}, "make")
    head = put(repo, author, {"f": None}, "gone")
    with pytest.raises(StaleBase):
        repo.revert("b", made, expected_head=made, author=author)
    again = repo.commit("c", {"f": None}, parent=made, author=author, message="gone")
    wrong = repo.commit("c", {"z": b"1"}, parent=again, author=author, message="z")
    clean = repo.revert("c", wrong, expected_head=wrong, author=author)
    with pytest.raises(NothingToCommit):
        repo.revert("c", wrong, expected_head=clean, author=author)
    assert repo.resolve("b") == head


ODD_AUTHORS = {
    b"A <a@b> 1700000000 +9999": ("A", 2023),
    b"A <a@b> 1700000000 -2500": ("A", 2023),
    b"A <a@b> 999999999999 +0000": ("A", 1970),
    b"A <a@b> 99999999999999999999999 +0000": ("A", 1970),
    b"A\x1fB\x1e <a@b> 1700000000 +0000": ("A\x1fB\x1e", 2023),
    b"A <a@b>": ("A", 1970),
    b"A <a@b>1700000000 +0000": ("A", 2023),
    b"A <a@b> 253402300799 +1400": ("A", 1970),
    b"A <a@b> x y": ("A", 1970),
    b"": ("", 1970),
}


@pytest.mark.parametrize("line", ODD_AUTHORS)
def test_a_commit_of_an_odd_tool_is_read_and_taken_back(
    repo: HarnessRepository, author: Author, line: bytes
) -> None:
    side = repo.commit("side", {"odd": b"quite something else\n"}, parent="main", author=author, message="m")
    tree = run_git(repo.path, "rev-parse", f"{side}^{{tree}}")
    head = repo.resolve("main").encode()
    lines = [b"tree " + tree.strip(), b"parent " + head, b"author " + line, b"committer C <c@d> 1 +0000"]
    data = b"\n".join(lines) + b"\n\nsub\x1eject\x1f\n"
    sha = write_object(repo, "commit", data)
    found = repo.log(sha, 1)[0]
    assert (found.author, found.when.year, found.message) == (*ODD_AUTHORS[line], "sub\x1eject\x1f")
    assert [change.commit for change in repo.history("odd", sha)] == [found]
    run_git(repo.path, "update-ref", "refs/heads/b", sha)
    assert repo.revert("b", sha, expected_head=sha, author=author)


def write_object(repo: HarnessRepository, kind: str, data: bytes) -> str:
    """As some other tool might, whatever git thinks of it."""
    store = b"%s %d\0" % (kind.encode(), len(data)) + data
    sha = hashlib.sha1(store, usedforsecurity=False).hexdigest()
    path = repo.path / "objects" / sha[:2] / sha[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(store))
    return sha


def test_the_bytes_of_other_encodings_are_read_by_them(repo: HarnessRepository) -> None:
    tree = run_git(repo.path, "rev-parse", "main^{tree}").strip()
    head = b"tree %s\nauthor Zo\xeb <z@e> 1 +0000\ncommitter C <c@d> 1 +0000\n" % tree
    sha = write_object(repo, "commit", head + b"encoding ISO-8859-1\n\ncaf\xe9\0\n")
    found = repo.log(sha, 1)[0]
    assert (found.author, found.message) == ("Zoë", "café\ufffd")


def test_taking_back_the_only_commit_leaves_a_sound_repository(
    repo: HarnessRepository, author: Author
) -> None:
    first = repo.resolve("main")
    sha = repo.revert("main", first, expected_head=first, author=author)
    assert repo.files(sha) == {}
    assert run_git(repo.path, "fsck", "--strict") == b""
    repo.commit("main", {"a": b"1"}, parent=sha, author=author, message="m")
