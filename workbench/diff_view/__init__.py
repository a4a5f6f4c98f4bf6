"""A parsed diff as what a page shows: rows in one of three layouts, with words marked, colours, folds and notes.

`files` is the way in; `folds` decides what is shown, `lines` what belongs together, `layouts` and `marked_lines` make
the rows. It reads nothing: the diff and the files of both versions are given.
"""

from workbench.diff_view.files import (
    Look,
    find_row,
    list_rows,
    view_diff,
    view_file,
    view_gap,
    view_line,
)
from workbench.diff_view.rows import DiffRow, FileView, Gap, HunkView, Layout, Side, Sources, line_key

__all__ = [
    "DiffRow",
    "FileView",
    "Gap",
    "HunkView",
    "Layout",
    "Look",
    "Side",
    "Sources",
    "find_row",
    "line_key",
    "list_rows",
    "view_diff",
    "view_file",
    "view_gap",
    "view_line",
]
