import pytest

from harness_repo.git.diffs import DiffLine, parse_diff
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import FILES, run_git


def test_a_diff_of_git_is_read_line_by_line(repo: HarnessRepository, author: Author) -> None:
    edits = {
        "skills/item-qa/SKILL.md": FILES["skills/item-qa/SKILL.md"] + "好\n".encode(),
        "prompts/新.md": b"x",
    }
    sha = repo.commit("b", edits, parent="main", author=author, message="m")
    new, changed = parse_diff(repo.diff("main", sha))
    assert [(new.path, new.status), (changed.path, changed.status)] == [
        ("prompts/新.md", "added"),
        ("skills/item-qa/SKILL.md", "modified"),
    ]
    assert changed.hunks[0].lines[-1] == DiffLine("+", None, 10, "好")
    assert changed.hunks[0].lines[0].kind == " "
    assert changed.hunks[0].header.startswith("@@ -7,3 +7,4 @@")


def test_removed_and_renamed_files_are_told_apart(repo: HarnessRepository, author: Author) -> None:
    edits = {
        "hooks/short.yaml": None,
        "hooks/brief.yaml": FILES["hooks/short.yaml"],
        "tools/get_item.yaml": None,
    }
    sha = repo.commit("b", edits, parent="main", author=author, message="m")
    found = [(file.path, file.status, file.old_path) for file in parse_diff(repo.diff("main", sha))]
    assert found == [
        ("hooks/brief.yaml", "renamed", "hooks/short.yaml"),
        ("tools/get_item.yaml", "removed", None),
    ]


def test_added_and_removed_lines_are_counted_as_git_counts_them(
    repo: HarnessRepository, author: Author
) -> None:
    sha = repo.commit(
        "b", {"harness.yaml": b"format: 1\nname: x\n"}, parent="main", author=author, message="m"
    )
    lines = [line for hunk in parse_diff(repo.diff("main", sha))[0].hunks for line in hunk.lines]
    kinds = [line.kind for line in lines]
    assert (kinds.count("+"), kinds.count("-")) == (1, 8)


def test_an_empty_diff_has_no_files() -> None:
    assert parse_diff("") == []


def test_a_broken_diff_is_a_value_error() -> None:
    with pytest.raises(ValueError, match="not a unified diff"):
        parse_diff("--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n only one line\n")


ODD_PATHS = [
    "Plan b/c.md", "a b/a b/b/c.md", 'the "best".md', '"', "sp ace.md", " lead.md", "trail .md", "b/a/x.md",
    "é/中 b/x.md", "dev/null b/x", 'a "b/c".md', "x b/x", "t\u2028u.md", "\x85.md",
]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (b"x\n", b"y\n", "modified"), (None, b"y\n", "added"), (b"x\n", None, "removed"), (None, b"", "added"),
        (b"", None, "removed"), (b"\0x", b"\0y", "modified"), (None, b"\0y", "added"),
        (b"-- a\n++ b\n", b"-- b\ndiff --git a/x b/x\n@@ -1 +1 @@\n", "modified"), (b"x", b"x\n", "modified"),
        (b"a\rb\x0cc\n", b"a\rb\x85c\n", "modified"),
    ],
)  # fmt: skip
def test_every_path_and_every_change_is_told(
    repo: HarnessRepository, before: bytes | None, after: bytes | None, status: str
) -> None:
    author = Author("a", "a@example.org")
    texts = [
        {"z": data[:1], **dict.fromkeys(ODD_PATHS, text)} for data, text in ((b"z", before), (b"y", after))
    ]
    first = repo.commit("b", texts[0], parent="main", author=author, message="m")
    second = repo.commit("b", texts[1], parent=first, author=author, message="m")
    found = parse_diff(repo.diff(first, second))
    assert {(file.path, file.status) for file in found} == {
        *((path, status) for path in ODD_PATHS),
        ("z", "modified"),
    }
    is_binary = b"\0" in (before or b"") + (after or b"")
    odd = [file for file in found if file.path != "z"]
    assert all(file.is_binary == is_binary for file in odd)
    for line in (line for file in odd for hunk in file.hunks for line in hunk.lines):
        text, number = (before, line.old) if line.kind == "-" else (after, line.new)
        assert (text or b"").decode("utf-8", "replace").split("\n")[(number or 0) - 1] == line.text


def test_a_renamed_file_with_an_odd_name_is_told(repo: HarnessRepository, author: Author) -> None:
    old, new = 'Plan b/the "old" b/x.md', "Plan b/new b/y.md"
    first = repo.commit("b", {old: b"1\n2\n3\n"}, parent="main", author=author, message="m")
    second = repo.commit("b", {old: None, new: b"1\n2\n3\n"}, parent=first, author=author, message="m")
    (found,) = parse_diff(repo.diff(first, second))
    assert (found.path, found.status, found.old_path) == (new, "renamed", old)


def test_how_much_of_a_renamed_file_stayed_is_told(repo: HarnessRepository, author: Author) -> None:
    old = "".join(f"line {at}\n" for at in range(20)).encode()
    first = repo.commit("b", {"x.md": old}, parent="main", author=author, message="m")
    edits = {"x.md": None, "y.md": old.replace(b"line 3\n", b"line three\n")}
    second = repo.commit("b", edits, parent=first, author=author, message="m")
    (found,) = parse_diff(repo.diff(first, second))
    assert found.similarity
    assert 80 < found.similarity < 100


def test_a_last_line_without_an_end_is_told(repo: HarnessRepository, author: Author) -> None:
    first = repo.commit("b", {"x.md": b"a\nb"}, parent="main", author=author, message="m")
    second = repo.commit("b", {"x.md": b"a\nb\n"}, parent=first, author=author, message="m")
    (found,) = parse_diff(repo.diff(first, second))
    assert [(line.kind, line.has_newline) for line in found.hunks[0].lines] == [
        (" ", True),
        ("-", False),
        ("+", True),
    ]


def test_a_change_of_mode_is_told() -> None:
    (found,) = parse_diff("diff --git a/x.sh b/x.sh\nold mode 100644\nnew mode 100755\n")
    assert (found.old_mode, found.new_mode, found.hunks) == ("100644", "100755", [])


def test_changes_are_listed_with_the_size_of_their_larger_side(
    repo: HarnessRepository, author: Author
) -> None:
    role, skill = "prompts/role.md", "skills/item-qa/SKILL.md"
    edits = {role: b"x", skill: None, "new.md": b"12345"}
    sha = repo.commit("b", edits, parent="main", author=author, message="m")
    assert [(change.path, change.size) for change in repo.list_changes("main", sha)] == [
        ("new.md", 5),
        (role, len(FILES[role])),
        (skill, len(FILES[skill])),
    ]
    assert repo.list_changes(sha, sha) == []


def test_a_symbolic_ref_is_told_from_a_branch_and_taken_away_alone(
    repo: HarnessRepository,
) -> None:
    repo.move_branch("b", "main", expected_head=None)
    run_git(repo.path, "symbolic-ref", "refs/heads/p", "refs/heads/b")
    assert (repo.is_pointer("p"), repo.is_pointer("b"), repo.is_pointer("c")) == (True, False, False)
    repo.drop_pointer("p")
    assert sorted(repo.branches()) == ["b", "main"]
