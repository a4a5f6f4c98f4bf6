import subprocess
from pathlib import Path

import pytest

from harness_repo.git.diffs import FileDiff, parse_diff
from workbench.typed_diff import diff_texts

LONG = "".join(f"line {n}\n" for n in range(1, 31))


def of_git(folder: Path, old: str | None, new: str | None) -> FileDiff:
    """The same change as git tells it."""
    for name, text in (("old", old), ("new", new)):
        (folder / name).mkdir()
        if text is not None:
            (folder / name / "a.md").write_bytes(text.encode())
    asked = ["git", "diff", "--no-index", "--no-color", "old", "new"]
    told = subprocess.run(asked, cwd=folder, capture_output=True, check=False).stdout.decode()
    return parse_diff(told)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (LONG, LONG.replace("line 3\n", "other\n").replace("line 25\n", "")),
        (LONG, "top\n" + LONG),
        (None, "a\nb\n"),
        ("a\nb\n", None),
        ("a\nb\n", "a\nb"),
        ("", "a\u2028b\rc\n"),
    ],
    ids=["two places", "first line", "new file", "deleted file", "no newline", "odd line ends"],
)
def test_a_typed_change_is_told_as_git_tells_it(tmp_path: Path, old: str | None, new: str | None) -> None:
    ours, theirs = diff_texts("a.md", old, new), of_git(tmp_path, old, new)

    assert ours is not None
    assert [hunk.lines for hunk in ours.hunks] == [hunk.lines for hunk in theirs.hunks]


def test_the_same_text_is_no_change() -> None:
    assert diff_texts("a.md", LONG, LONG) is None


def test_another_path_is_a_change_without_lines() -> None:
    moved = diff_texts("b.md", LONG, LONG, "a.md")

    assert moved is not None
    assert (moved.status, moved.old_path, moved.hunks) == ("renamed", "a.md", [])
