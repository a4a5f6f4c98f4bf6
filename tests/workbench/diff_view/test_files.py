import pytest

from harness_repo.git.diffs import parse_diff
from tests.workbench.diff_view.diffs import make_diff, number_lines
from workbench.diff_view import (
    DiffRow,
    FileView,
    Layout,
    Look,
    Sources,
    find_row,
    line_key,
    list_rows,
    view_diff,
    view_file,
    view_gap,
    view_line,
)

DIFF = """diff --git a/skills/x/SKILL.md b/skills/x/SKILL.md
--- a/skills/x/SKILL.md
+++ b/skills/x/SKILL.md
@@ -1,4 +1,5 @@ head
 same
-say the price
-drop me
+say the final price
 tail
+new
+last
"""
RENAMED = """diff --git a/old.md b/new.md
similarity index 75%
rename from old.md
rename to new.md
--- a/old.md
+++ b/new.md
@@ -1 +1 @@
-before
+after
"""


def test_rows_have_the_numbers_of_both_sides() -> None:
    rows = view_diff(parse_diff(DIFF))[0].hunks[0].rows

    assert [(row.kind, row.old, row.new) for row in rows] == [
        (" ", 1, 1),
        ("-", 2, None),
        ("-", 3, None),
        ("+", None, 2),
        (" ", 4, 3),
        ("+", None, 4),
        ("+", None, 5),
    ]


def test_paired_lines_have_their_words_marked() -> None:
    rows = view_diff(parse_diff(DIFF))[0].hunks[0].rows

    assert rows[3].html == "say the <ins>final </ins>price"


def test_added_and_removed_lines_are_counted() -> None:
    file = view_diff(parse_diff(DIFF))[0]

    assert (file.added, file.removed, file.has_hidden) == (3, 2, False)


def test_each_run_of_changes_begins_once() -> None:
    rows = view_diff(parse_diff(DIFF))[0].hunks[0].rows

    assert [row.line for row in rows if row.is_start] == [2, 4]


def test_a_row_is_found_by_its_anchor_on_either_side() -> None:
    views = view_diff(parse_diff(DIFF))

    found = [find_row(views, anchor) for anchor in ("1-old-3", "1-new-4", "1-old-1", "file-1", "2-new-1")]

    assert [row and row.key for row in found] == [
        line_key("skills/x/SKILL.md", "old", 3),
        line_key("skills/x/SKILL.md", "new", 4),
        line_key("skills/x/SKILL.md", "new", 1),
        line_key("skills/x/SKILL.md", "new", 0),
        None,
    ]


@pytest.mark.parametrize("layout", ["unified", "split", "words"])
def test_notes_are_under_their_line_in_every_layout(layout: Layout) -> None:
    files, sources = make_diff({"a.md": (number_lines(30), number_lines(30, {10: "line ten"}))})
    keys = [line_key("a.md", side, line) for side, line in (("old", 9), ("old", 10), ("new", 10), ("new", 0))]

    (view,) = view_diff(files, sources, layout=layout, notes={key: key for key in keys})

    noted = [note for row in _once(view) for note in row.notes]
    assert sorted([*noted, *view.notes]) == sorted(keys)


def _once(view: FileView) -> list[DiffRow]:
    return list({row.anchor: row for row in list_rows(view)}.values())


def test_notes_on_the_old_name_of_a_renamed_file_are_found() -> None:
    (view,) = view_diff(parse_diff(RENAMED), notes={line_key("old.md", "old", 1): "a note"})

    assert view.hunks[0].rows[0].notes == ["a note"]
    assert (view.old_path, view.similarity) == ("old.md", 75)


def test_what_is_not_in_the_diff_is_folded_and_counted() -> None:
    files, sources = make_diff({"a.md": (number_lines(30), number_lines(30, {10: "ten", 20: "twenty"}))})

    (view,) = view_diff(files, sources)

    gaps = [hunk.gap and (hunk.gap.first, hunk.gap.last) for hunk in view.hunks]
    assert gaps == [(1, 6), (14, 16)]
    assert view.tail
    assert (view.tail.first, view.tail.last) == (24, 30)


@pytest.mark.parametrize(
    ("show", "shown", "left"), [("up", (21, 40), [(41, 196)]), ("down", (177, 196), [(21, 176)])]
)
def test_a_gap_is_unfolded_in_steps(show: str, shown: tuple[int, int], left: list[tuple[int, int]]) -> None:
    files, sources = make_diff({"a.md": (number_lines(300), number_lines(300, {17: "x", 200: "y"}))})

    view = view_gap(files, 1, sources, Look(), (21, 196), show=show)

    assert view
    rows = view.hunks[0].rows
    assert (rows[0].new, rows[-1].new, rows[0].text) == (*shown, f"line {shown[0]}")
    gaps = [gap for gap in (view.hunks[0].gap, view.tail) if gap]
    assert [(gap.first, gap.last) for gap in gaps] == left


def test_unfolded_lines_have_the_old_numbers_too() -> None:
    text = number_lines(40)
    files, sources = make_diff({"a.md": (text, f"new\nnew\n{text}")})

    view = view_gap(files, 1, sources, Look(), (10, 12))

    assert view
    assert [(row.old, row.new, row.text) for row in view.hunks[0].rows] == [
        (8, 10, "line 8"),
        (9, 11, "line 9"),
        (10, 12, "line 10"),
    ]


@pytest.mark.parametrize("lines", [(9, 12), (10, 10), (0, 0), (40, 50), (20, 15)])
def test_what_is_not_folded_is_not_unfolded(lines: tuple[int, int]) -> None:
    files, sources = make_diff({"a.md": (number_lines(30), number_lines(30, {10: "ten"}))})

    assert view_gap(files, 1, sources, Look(), lines) is None


def test_a_large_file_comes_in_parts_and_nothing_is_lost() -> None:
    old, new = number_lines(2600), number_lines(2600, {at: f"other {at}" for at in range(1, 2601)})
    files, sources = make_diff({"a.txt": (old, new)})

    (first,) = view_diff(files, sources)
    parts = [first]
    while parts[-1].rest:
        parts.append(view_file(files, 1, sources, Look(), start=parts[-1].next_start))

    rows = [row for part in parts for row in list_rows(part)]
    assert first.row_count == len(rows) == 5200
    assert {row.kind for row in list_rows(first)} == {"-", "+"}
    assert [row.text for row in rows if row.kind == "+"] == new.splitlines()


def test_files_that_are_too_many_wait_and_say_how_much_they_are() -> None:
    files, sources = make_diff({f"f{at:03}.md": ("a\nb\n", "a\nc\n") for at in range(150)})

    views = view_diff(files, sources)

    waiting = [view for view in views if view.is_deferred]
    assert [len(views), len(waiting), waiting[0].row_count] == [150, 50, 3]
    assert list_rows(view_file(files, 150, sources, Look()))[-1].text == "c"


def test_changes_of_white_space_are_hidden_and_counted() -> None:
    old = "a:\n  b: 1\n  c: 2\n" + number_lines(20) + "end:  1\n"
    new = "a:\n    b: 1\n    c: 3\n" + number_lines(20) + "end: 1\n"
    files, sources = make_diff({"a.yaml": (old, new)})

    (view,) = view_diff(files, sources, hide_space=True)

    rows = [row for row in list_rows(view) if row.kind != " "]
    assert [(row.kind, row.text) for row in rows] == [("-", "  c: 2"), ("+", "    c: 3")]
    assert (view.hidden_space, view.added, view.tail and view.tail.last) == (2, 3, 24)


def test_a_file_of_which_only_white_space_changed_has_no_rows_left() -> None:
    files, sources = make_diff({"a.md": ("x \n", "x\n")})

    (view,) = view_diff(files, sources, hide_space=True)

    assert (view.hunks, view.row_count, view.hidden_space) == ([], 0, 1)


def test_line_ends_that_change_are_counted_and_seen() -> None:
    diff = (
        "diff --git a/a.md b/a.md\n--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n-one\r\n-two\r\n+one\n+two!\r\n"
    )

    (view,) = view_diff(parse_diff(diff))

    rows = view.hunks[0].rows
    assert (view.changed_ends, view.has_hidden) == (1, False)
    assert [("line-end" in row.html) for row in rows] == [True, True, False, True]


def test_prose_by_word_is_read_as_a_whole() -> None:
    files, sources = make_diff({"a.md": (number_lines(40), number_lines(40, {20: "line twenty"}))})

    (view,) = view_diff(files, sources, layout="words")

    (hunk,) = view.hunks
    assert (len(hunk.words), view.tail) == (40, None)
    assert hunk.words[19].html == "line <del>20</del><ins>twenty</ins>"


def test_the_digest_changes_with_the_change_only() -> None:
    one, _ = make_diff({"a.md": ("a\n", "b\n")})
    other, _ = make_diff({"a.md": ("a\n", "c\n")})
    digests = [view_diff(files)[0].digest for files in (one, one, other)]

    assert digests[0] == digests[1] != digests[2]


def test_a_long_line_is_cut_around_its_change_and_there_as_a_whole() -> None:
    long = "word " * 3000
    files, sources = make_diff({"a.md": (f"{long}old{long}\n", f"{long}new{long}\n")})

    row = view_diff(files, sources)[0].hunks[0].rows[1]
    whole = view_line(files, 1, "new", 1, sources)

    assert "<ins>new" in row.html
    assert row.cut_before + row.cut_after == len(row.text) - 2000
    assert whole
    assert (whole.html, whole.is_cut) == (f"{long}new{long}", False)


def test_without_sources_there_is_only_what_the_diff_has() -> None:
    (view,) = view_diff(parse_diff(DIFF), Sources())

    assert (view.tail, view.hunks[0].gap) == (None, None)
