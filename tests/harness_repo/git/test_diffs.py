import pytest

from harness_repo.git.diffs import DiffLine, parse_diff
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import FILES


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
