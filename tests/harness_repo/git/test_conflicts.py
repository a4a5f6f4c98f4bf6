from pathlib import Path

import pytest

from harness_repo.git.conflicts import ConflictHunk, FileConflict
from harness_repo.git.errors import MergeConflict
from harness_repo.git.objects import Author
from harness_repo.git.repository import Edits, HarnessRepository
from tests.harness_repo.build import run_git

TEXT = b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"
BASE = {
    "f.md": TEXT,
    "b.bin": b"x\0y",
    "d.md": b"a\n",
    "dir": b"q\n",
    "move.md": b"".join(b"%d\n" % n for n in range(30)),
}


def sides(repo: HarnessRepository, author: Author, base: Edits, *versions: Edits) -> tuple[str, list[str]]:
    start = repo.commit("base", base, parent="main", author=author, message="base")
    heads = [
        repo.commit(f"side/{number}", edits, parent=start, author=author, message="side")
        for number, edits in enumerate(versions)
    ]
    return start, heads


def conflicts(repo: HarnessRepository, author: Author, ours: Edits, theirs: Edits) -> list[FileConflict]:
    start, heads = sides(repo, author, BASE, ours, theirs)
    with pytest.raises(MergeConflict) as caught:
        repo.merge("step/1", start, heads, author=author, message="step")
    assert caught.value.head == heads[1]
    assert "step/1" not in repo.branches()
    assert repo.check_merge(start, heads).conflicts == caught.value.conflicts
    return list(caught.value.conflicts)


def test_each_hunk_says_where_it_is_and_what_each_side_has(repo: HarnessRepository, author: Author) -> None:
    ours = TEXT.replace(b"2\n", b"two\nmore\n").replace(b"8\n", b"eight\n")
    theirs = TEXT.replace(b"2\n", b"zwei\n").replace(b"8\n", b"")
    (found,) = conflicts(repo, author, {"f.md": ours}, {"f.md": theirs})
    assert (found.path, found.kind) == ("f.md", "content")
    assert found.hunks == (
        ConflictHunk(2, base="2\n", ours="two\nmore\n", theirs="zwei\n"),
        ConflictHunk(9, base="8\n", ours="eight\n", theirs=""),
    )


def test_lines_that_look_like_marks_are_only_lines(repo: HarnessRepository, author: Author) -> None:
    marks = b"<<<<<<< a\n|||||||||| b\n=======\n>>>>>>> c\n"
    (found,) = conflicts(repo, author, {"f.md": marks + b"o\n"}, {"f.md": b"t\n" + marks})
    assert all(mark in found.hunks[0].ours + found.hunks[-1].theirs for mark in marks.decode().splitlines())


@pytest.mark.parametrize(
    ("ours", "theirs", "kinds"),
    [
        ({"new.yaml": b"a\n"}, {"new.yaml": b"b\n"}, {"new.yaml": "add/add"}),
        ({"b.bin": b"x\0o"}, {"b.bin": b"x\0t"}, {"b.bin": "binary"}),
        ({"d.md": b"b\n"}, {"d.md": None}, {"d.md": "modify/delete"}),
        ({"d.md": None}, {"d.md": b"b\n"}, {"d.md": "delete/modify"}),
        ({"dir": b"q\nr\n"}, {"dir": None, "dir/a": b"z\n"}, {"dir": "file/directory"}),
    ],
)
def test_what_is_wrong_with_a_file_has_a_name(
    repo: HarnessRepository, author: Author, ours: Edits, theirs: Edits, kinds: dict[str, str]
) -> None:
    found = conflicts(repo, author, ours, theirs)
    assert {conflict.path: conflict.kind for conflict in found} == kinds


def test_a_file_that_both_renamed_is_named_with_both_names(repo: HarnessRepository, author: Author) -> None:
    data = BASE["move.md"]
    found = conflicts(repo, author, {"move.md": None, "o.md": data}, {"move.md": None, "t.md": data})
    assert {(conflict.path, conflict.kind) for conflict in found} == {
        (path, "rename/rename") for path in ("move.md", "o.md", "t.md")
    }


def test_a_check_says_that_a_merge_would_succeed_and_leaves_nothing(
    repo: HarnessRepository, author: Author
) -> None:
    start, heads = sides(repo, author, BASE, {"f.md": b"0\n" + TEXT}, {"f.md": TEXT + b"10\n"}, {"new": b"x"})
    before = run_git(repo.path, "count-objects", "-v")
    assert repo.check_merge(start, heads).is_clean
    assert run_git(repo.path, "count-objects", "-v") == before
    assert "side/0" in repo.branches()


def test_a_check_names_the_head_that_brings_the_conflict(repo: HarnessRepository, author: Author) -> None:
    start, heads = sides(repo, author, BASE, {"x": b"1"}, {"f.md": b"o\n"}, {"f.md": b"t\n"})
    assert repo.check_merge(start, heads).head == heads[2]
    assert repo.check_merge(start, [heads[0], heads[2]]).is_clean


def test_a_conflict_with_a_merged_file_shows_the_merge_as_ours(
    repo: HarnessRepository, author: Author
) -> None:
    versions = [
        TEXT.replace(b"1\n", b"one\n"),
        TEXT.replace(b"9\n", b"nine\n"),
        TEXT.replace(b"9\n", b"neun\n"),
    ]
    start, heads = sides(repo, author, BASE, *({"f.md": version} for version in versions))
    (found,) = repo.check_merge(start, heads).conflicts
    assert found.hunks == (ConflictHunk(9, base="9\n", ours="nine\n", theirs="neun\n"),)


def test_a_lone_carriage_return_ends_no_line(repo: HarnessRepository, author: Author) -> None:
    text = b"a\rb\nc\rd\nx\n"
    ours, theirs = text.replace(b"x", b"q\r<<<<<<< a"), text.replace(b"x", b"w\r=======\r>>>>>>> b")
    start, heads = sides(repo, author, {"f.txt": text}, {"f.txt": ours}, {"f.txt": theirs})
    (found,) = repo.check_merge(start, heads).conflicts
    assert found.hunks == (
        ConflictHunk(3, base="x\n", ours="q\r<<<<<<< a\n", theirs="w\r=======\r>>>>>>> b\n"),
    )


@pytest.mark.parametrize(
    ("base", "ours", "theirs"), [("x", "y", "z"), ("x\n", "x", "y\n"), ("x", "x\n", "x\nz")]
)
def test_the_end_of_the_last_line_is_a_part_of_it(
    repo: HarnessRepository, author: Author, base: str, ours: str, theirs: str
) -> None:
    start, heads = sides(repo, author, *({"f.txt": text.encode()} for text in (base, ours, theirs)))
    (found,) = repo.check_merge(start, heads).conflicts
    (hunk,) = found.hunks
    assert [text + found.path for text in (hunk.base, hunk.ours, hunk.theirs)] != [found.path] * 3
    assert (base + ours + theirs).startswith(hunk.base)


@pytest.mark.parametrize(
    ("versions", "kind"),
    [
        ((("100644", "a"), ("120000", "b"), ("100644", "c")), "distinct modes"),
        ((("160000", "1"), ("160000", "2"), ("160000", "3")), "submodule"),
        ((("120000", "a"), ("120000", "b"), ("120000", "c")), "symbolic link"),
    ],
)
def test_a_path_in_conflict_is_named_once(
    repo: HarnessRepository, tmp_path: Path, versions: tuple[tuple[str, str], ...], kind: str
) -> None:
    heads: list[str] = []
    for number, (mode, text) in enumerate(versions):
        env = {"GIT_INDEX_FILE": str(tmp_path / f"index-{number}")}
        (tmp_path / "blob").write_text(f"{text}\n")
        blob = run_git(repo.path, "hash-object", "-w", str(tmp_path / "blob")).decode().strip()
        sha = text * 40 if mode == "160000" else blob
        run_git(repo.path, "update-index", "--add", "--cacheinfo", f"{mode},{sha},p", env=env)
        tree = run_git(repo.path, "write-tree", env=env).decode().strip()
        parents = [part for parent in heads[:1] for part in ("-p", parent)]
        heads.append(run_git(repo.path, "commit-tree", "-m", text, *parents, tree).decode().strip())
    found = repo.check_merge(heads[1], heads[2:]).conflicts
    assert [(conflict.path, conflict.kind) for conflict in found] == [("p", kind)]


def test_a_conflict_has_one_key_whichever_side_is_ours(repo: HarnessRepository, author: Author) -> None:
    start, heads = sides(repo, author, BASE, {"f.md": b"a\n" + TEXT[2:]}, {"f.md": b"b\n" + TEXT[2:]})
    (there,) = repo.check_merge(start, heads).conflicts
    (back,) = repo.check_merge(start, heads[::-1]).conflicts
    assert there.key == back.key
    assert (there.sides.ours, back.sides.ours) == (back.sides.theirs, there.sides.theirs)
    assert there.sides.base == TEXT


def test_what_people_decided_is_taken_where_the_same_versions_meet(
    repo: HarnessRepository, author: Author
) -> None:
    edits = ({"f.md": b"a\n" + TEXT[2:]}, {"f.md": b"b\n" + TEXT[2:], "d.md": b"d\n"}, {"new.md": b"n\n"})
    start, heads = sides(repo, author, BASE, *edits)
    (conflict,) = repo.check_merge(start, heads).conflicts
    known = {conflict.key: b"both\n" + TEXT[2:]}
    check = repo.check_merge(start, heads, resolutions=known)
    merged = repo.merge("step/1", start, heads, author=author, message="s", resolutions=known)
    assert repo.read_file(merged, "f.md") == b"both\n" + TEXT[2:]
    assert repo.changed_files(start, merged) == ["d.md", "f.md", "new.md"]
    assert check.is_clean
    assert [file.path for file in check.settled] == ["f.md"]
    assert check.tree == repo.tree_of(merged)


def test_a_resolution_does_not_hold_for_other_versions(repo: HarnessRepository, author: Author) -> None:
    start, heads = sides(
        repo, author, BASE, *({"f.md": word + TEXT[2:]} for word in (b"a\n", b"b\n", b"c\n"))
    )
    (conflict,) = repo.check_merge(start, heads[:2]).conflicts
    assert not repo.check_merge(start, [heads[0], heads[2]], resolutions={conflict.key: b"x\n"}).is_clean


@pytest.mark.parametrize(
    ("ours", "theirs", "path"),
    [
        ({"d.md": b"b\n"}, {"d.md": None}, "d.md"),
        ({"dir": b"q\nr\n"}, {"dir": None, "dir/a": b"z\n"}, "dir"),
    ],
)
def test_a_file_that_one_side_removed_goes_or_stays_as_decided(
    repo: HarnessRepository, author: Author, ours: Edits, theirs: Edits, path: str
) -> None:
    start, heads = sides(repo, author, BASE, ours, theirs)
    (conflict,) = repo.check_merge(start, heads).conflicts
    kept, gone = (
        repo.build_merge(start, heads, author=author, message="s", resolutions={conflict.key: content})
        for content in (b"kept\n", None)
    )
    assert repo.read_file(kept, path) == b"kept\n"
    assert path not in repo.files(gone)
    assert not any("~" in name for name in (*repo.files(kept), *repo.files(gone)))


def test_the_parts_of_a_file_are_its_settled_lines_and_its_hunks(
    repo: HarnessRepository, author: Author
) -> None:
    ours = TEXT.replace(b"2\n", b"two\n").replace(b"8\n", b"eight\n")
    (found,) = conflicts(repo, author, {"f.txt": ours}, {"f.txt": TEXT.replace(b"2\n", b"zwei\n")})
    assert found.kind == "add/add"
    texts = [part if isinstance(part, bytes) else part.ours for part in found.parts]
    assert b"".join(texts) == ours


@pytest.mark.parametrize(
    ("data", "is_text"), [(b"\xff\n", False), (b"x\0\n", False), ("规则\n".encode(), True)]
)
def test_only_utf8_is_text(repo: HarnessRepository, author: Author, *, data: bytes, is_text: bool) -> None:
    (found,) = conflicts(repo, author, {"n.md": data}, {"n.md": b"other\n"})
    assert found.sides.is_text == is_text
