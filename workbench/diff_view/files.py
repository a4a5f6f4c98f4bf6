"""The files of a diff, ready for the page: as much of each as a page can hold, and parts of one that are asked for."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from harness_repo.git.diffs import DiffLine, FileDiff
from workbench.diff_view.folds import Run, Texts, cut_runs, fill, fold, list_gaps, narrow, read_texts, unfold
from workbench.diff_view.layouts import Shared, lay_out_split, lay_out_unified, lay_out_words, make_row
from workbench.diff_view.lines import count_changed_ends, find_moves, hide_space
from workbench.diff_view.rows import (
    PART_ROWS,
    DiffRow,
    FileView,
    HunkView,
    Layout,
    Side,
    Sources,
    list_keys,
)
from workbench.highlighting import colour_lines, is_prose
from workbench.text_marks import has_hidden

# Rows of one file, rows of all files, and files that a page shows unasked.
FILE_ROWS = 1_000
PAGE_ROWS = 3_000
PAGE_FILES = 100


@dataclass(frozen=True)
class Look:
    """How people want to see a diff."""

    layout: Layout = "unified"
    hide_space: bool = False
    # Every line of the files, with nothing folded.
    whole: bool = False


@dataclass(frozen=True)
class _Frame:
    """What stays the same over the files of a diff."""

    sources: Sources
    look: Look
    notes: Mapping[str, Any] = field(default_factory=dict)
    moves: Mapping[tuple[str, str, int], tuple[str, int]] = field(default_factory=dict)


def view_diff(
    files: Sequence[FileDiff],
    sources: Sources | None = None,
    *,
    layout: Layout = "unified",
    hide_space: bool = False,
    notes: Mapping[str, Any] | None = None,
    first: int = 1,
) -> list[FileView]:
    """Prepare a diff for the page; its files are numbered from `first` on, so that a page can have two diffs.

    Files, and rows of files, that are too many for a page are left for later: `FileView.rest` counts them.
    """
    frame = _Frame(sources or Sources(), Look(layout, hide_space), notes or {}, find_moves(files))
    views: list[FileView] = []
    left = PAGE_ROWS
    for number, file in enumerate(files, first):
        most = min(FILE_ROWS, left) if number - first < PAGE_FILES else 0
        view = _view_file(file, number, frame, 0, max(most, 0))
        left -= view.row_count - view.rest
        views.append(view)
    return views


def view_file(
    files: Sequence[FileDiff],
    number: int,
    sources: Sources,
    look: Look,
    *,
    start: int = 0,
    notes: Mapping[str, Any] | None = None,
) -> FileView:
    """A part of file `number` (from 1): the rows from `start` on, as many as one step brings."""
    frame = _Frame(sources, look, notes or {}, find_moves(files))
    return _view_file(files[number - 1], number, frame, start, PART_ROWS)


def _view_file(file: FileDiff, number: int, frame: _Frame, start: int, most: int) -> FileView:
    shown, hidden_space = hide_space(file) if frame.look.hide_space else (file, 0)
    texts = read_texts(file, frame.sources)
    runs, tail = fold(shown, texts)
    if _is_unfolded(file, frame.look, texts):
        runs, tail = unfold(runs, tail, texts), None
    row_count = sum(len(run.lines) for run in runs)
    # A file whose first part alone would be cut off by the page's end waits as a whole.
    kept = cut_runs(runs, start, most) if most >= min(row_count, FILE_ROWS) or start else []
    rest = max(row_count - start - sum(len(run.lines) for run in kept), 0)
    lines = [line for hunk in file.hunks for line in hunk.lines]
    return FileView(
        path=file.path,
        old_path=file.old_path or file.path,
        status=file.status,
        added=sum(line.kind == "+" for line in lines),
        removed=sum(line.kind == "-" for line in lines),
        number=number,
        layout=frame.look.layout,
        hunks=_lay_out(kept, _share(file, number, frame, texts), frame.look.layout) if kept else [],
        tail=None if rest else tail,
        similarity=file.similarity,
        old_mode=file.old_mode,
        new_mode=file.new_mode,
        is_binary=file.is_binary,
        old_size=_size(frame.sources.base, file.old_path or file.path),
        new_size=_size(frame.sources.head, file.path),
        row_count=row_count,
        start=start,
        rest=rest,
        hidden_space=hidden_space,
        changed_ends=count_changed_ends(file),
        has_hidden=any(line.kind == "+" and has_hidden(line.text.removesuffix("\r")) for line in lines),
        digest=_digest(file, lines),
        notes=_notes_on_file(file, frame.notes),
    )


def _is_unfolded(file: FileDiff, look: Look, texts: Texts) -> bool:
    """Prose that is read by words is read as a whole, unless it is long."""
    is_text = look.layout == "words" and is_prose(file.path) and len(texts.new) <= FILE_ROWS
    return bool(texts.new) and (look.whole or is_text)


def _size(files: Mapping[str, bytes], path: str) -> int | None:
    return len(files[path]) if path in files else None


def _notes_on_file(file: FileDiff, notes: Mapping[str, Any]) -> list[Any]:
    keys = list_keys(file.path, file.old_path or file.path, 0, 0)
    return [notes[key] for key in keys if key in notes]


def _digest(file: FileDiff, lines: Sequence[DiffLine]) -> str:
    parts = [file.path, file.status, file.old_mode, file.new_mode]
    text = "\n".join([*parts, *(f"{line.kind}{line.text}" for line in lines)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _share(file: FileDiff, number: int, frame: _Frame, texts: Texts) -> Shared:
    old_path = file.old_path or file.path
    return Shared(
        path=file.path,
        old_path=old_path,
        file=number,
        old_colours=colour_lines(old_path, "\n".join(texts.old)),
        new_colours=colour_lines(file.path, "\n".join(texts.new)),
        moves=frame.moves,
        notes=frame.notes,
    )


def _lay_out(runs: Sequence[Run], shared: Shared, layout: Layout) -> list[HunkView]:
    if layout == "split":
        return [HunkView(run.header, run.gap, pairs=lay_out_split(run.lines, shared)) for run in runs]
    if layout == "words":
        return [HunkView(run.header, run.gap, words=lay_out_words(run.lines, shared)) for run in runs]
    return [HunkView(run.header, run.gap, rows=lay_out_unified(run.lines, shared)) for run in runs]


def view_gap(
    files: Sequence[FileDiff],
    number: int,
    sources: Sources,
    look: Look,
    lines: tuple[int, int],
    *,
    show: str = "",
    notes: Mapping[str, Any] | None = None,
) -> FileView | None:
    """Unfold lines of file `number` that did not change (numbers of the new side); None when they did.

    `show` is "up" or "down" for a step from the change above or below, else all is shown, as much as a step brings.
    """
    file = files[number - 1]
    frame = _Frame(sources, look, notes or {})
    texts = read_texts(file, sources)
    gaps = list_gaps(*fold(hide_space(file)[0] if look.hide_space else file, texts))
    gap = next((each for each in gaps if each.first <= lines[0] <= lines[1] <= each.last), None)
    if gap is None:
        return None
    above, shown, below = narrow(gap, *lines, show)
    if shown.count > PART_ROWS:
        below = replace(shown, first=shown.first + PART_ROWS)
        shown = replace(shown, last=below.first - 1)
    run = Run("", fill(shown, texts), above)
    hunks = _lay_out([run], _share(file, number, frame, texts), look.layout)
    return FileView(
        path=file.path,
        old_path=file.old_path or file.path,
        status=file.status,
        added=0,
        removed=0,
        number=number,
        layout=look.layout,
        hunks=hunks,
        tail=below,
    )


def view_line(
    files: Sequence[FileDiff], number: int, side: Side, line: int, sources: Sources
) -> DiffRow | None:
    """One changed line of file `number` as a whole, however long; None when there is no such line."""
    file = files[number - 1]
    texts = read_texts(file, sources)
    numbered = [each for hunk in file.hunks for each in hunk.lines] + [
        each for gap in list_gaps(*fold(file, texts)) for each in fill(gap, texts)
    ]
    found = next((each for each in numbered if (each.old if side == "old" else each.new) == line), None)
    shared = Shared(file.path, file.old_path or file.path, number)
    return None if found is None else make_row(found, shared, whole=True)


def find_row(views: Sequence[FileView], anchor: str) -> DiffRow | FileView | None:
    """The row, or the file, that has this id on the page."""
    for view in views:
        if anchor == view.anchor:
            return view
        for row in list_rows(view):
            if anchor in {row.anchor, f"{row.file}-old-{row.old}"}:
                return row
    return None


def list_rows(view: FileView) -> list[DiffRow]:
    """All lines of a file that are on the page, in whatever layout."""
    rows: list[DiffRow] = []
    for hunk in view.hunks:
        rows += hunk.rows
        rows += [row for pair in hunk.pairs for row in (pair.left, pair.right) if row is not None]
        rows += [line for word in hunk.words for line in word.lines]
    return rows
