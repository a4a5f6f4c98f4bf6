from harness_repo.git.diffs import parse_diff
from workbench.diff_view import view_diff

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
