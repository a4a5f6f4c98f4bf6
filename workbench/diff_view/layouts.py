"""Lines of a diff as rows of a table: one under the other, side by side, or one text with its words marked."""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

from harness_repo.git.diffs import DiffLine
from workbench.diff_view.lines import Pair, Place, pair_lines, split_runs
from workbench.diff_view.marked_lines import LONGEST_SHOWN, choose_window, cut_spans, render_line
from workbench.diff_view.rows import DiffRow, SplitRow, WordRow, list_keys
from workbench.highlighting import Colour
from workbench.text_marks import has_hidden
from workbench.word_changes import Span, WordChanges, compare_words

# Runs of lines less alike than this are shown as one taken out and another put in, not as words among words.
_ALIKE_RUNS = 0.25
# Lines of a run that are compared as one text, so that it may be wrapped anew; a longer one goes line by line.
_LONGEST_TEXT = 24


@dataclass(frozen=True)
class Shared:
    """What all rows of a file have in common."""

    path: str
    old_path: str
    file: int
    old_colours: Sequence[Sequence[Colour]] = ()
    new_colours: Sequence[Sequence[Colour]] = ()
    moves: Mapping[tuple[str, str, int], Place] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def colours(self, line: DiffLine) -> Sequence[Colour]:
        """The colours of a line, on the side where it stands."""
        side, number = (self.old_colours, line.old) if line.kind == "-" else (self.new_colours, line.new)
        return side[number - 1] if number and number <= len(side) else ()


@dataclass(frozen=True)
class _Block:
    """A run of changed lines as rows, which of them belong together, and what differs in these."""

    removed: list[DiffRow]
    added: list[DiffRow]
    pairs: list[Pair]


def make_row(line: DiffLine, shared: Shared, changes: Sequence[Span] = (), *, whole: bool = False) -> DiffRow:
    """One line as a row; a very long one is cut unless it is asked for as a whole."""
    text, tag = line.text, {"-": "del", "+": "ins"}.get(line.kind, "")
    window = (0, len(text)) if whole else choose_window(text, changes)
    first, last = window
    colours = [
        (start - first, end - first, css)
        for start, end, css in shared.colours(line)
        if first <= start and end <= last
    ]
    moved = _find_move(line, shared)
    notes = [shared.notes[key] for key in _keys(line, shared) if key in shared.notes] if shared.notes else []
    return DiffRow(
        kind=line.kind,
        old=line.old,
        new=line.new,
        text=text,
        html=render_line(text[first:last], colours, cut_spans(changes, window), tag),
        has_hidden=has_hidden(text.removesuffix("\r")),
        path=shared.path,
        old_path=shared.old_path,
        file=shared.file,
        has_newline=line.has_newline,
        cut_before=first,
        cut_after=len(text) - last,
        moved=moved,
        notes=notes,
    )


def _keys(line: DiffLine, shared: Shared) -> list[str]:
    return list_keys(shared.path, shared.old_path, line.old, line.new)


def _find_move(line: DiffLine, shared: Shared) -> Place | None:
    if line.kind == " " or not shared.moves:
        return None
    side, number = ("old", line.old) if line.kind == "-" else ("new", line.new)
    return shared.moves.get((shared.path, side, number or 0))


def lay_out_unified(lines: Sequence[DiffLine], shared: Shared) -> list[DiffRow]:
    """Removed lines, then the added ones, with their changed words marked."""
    rows: list[DiffRow] = []
    for same, removed, added in split_runs(lines):
        if same:
            rows += [make_row(line, shared) for line in same]
        else:
            block = _make_block(removed, added, shared)
            rows += _mark_start([*block.removed, *block.added])
    return rows


def lay_out_split(lines: Sequence[DiffLine], shared: Shared) -> list[SplitRow]:
    """The old lines on the left, the new ones on the right; what belongs together stands side by side."""
    pairs: list[SplitRow] = []
    for same, removed, added in split_runs(lines):
        pairs += [SplitRow(row, row) for row in (make_row(line, shared) for line in same)]
        block = _make_block(removed, added, shared)
        beside = _join_lone(block.pairs)
        for place, (at, beside_at) in enumerate(beside):
            left = None if at is None else replace(block.removed[at], is_start=place == 0)
            right = None if beside_at is None else replace(block.added[beside_at], is_start=place == 0)
            pairs.append(SplitRow(left, right))
    return pairs


def _join_lone(pairs: Sequence[Pair]) -> list[Pair]:
    """The same with lines that have no partner beside each other where they follow one another."""
    joined: list[Pair] = []
    removed: list[int] = []
    added: list[int] = []
    for at, beside in [*pairs, (-1, -1)]:
        if at is None or beside is None:
            removed += [] if at is None else [at]
            added += [] if beside is None else [beside]
            continue
        most = max(len(removed), len(added))
        joined += [(_nth(removed, place), _nth(added, place)) for place in range(most)]
        removed, added = [], []
        joined += [(at, beside)] if at >= 0 else []
    return joined


def _nth(places: Sequence[int], place: int) -> int | None:
    return places[place] if place < len(places) else None


def _make_block(removed: Sequence[DiffLine], added: Sequence[DiffLine], shared: Shared) -> _Block:
    pairs = pair_lines([line.text for line in removed], [line.text for line in added])
    old_changes: dict[int, list[Span]] = {}
    new_changes: dict[int, list[Span]] = {}
    for at, beside in pairs:
        if at is not None and beside is not None:
            changes = compare_words(removed[at].text, added[beside].text)
            if changes is not None:
                old_changes[at], new_changes[beside] = changes.old, changes.new
    return _Block(
        [make_row(line, shared, old_changes.get(at, ())) for at, line in enumerate(removed)],
        [make_row(line, shared, new_changes.get(at, ())) for at, line in enumerate(added)],
        pairs,
    )


def _mark_start(rows: list[DiffRow]) -> list[DiffRow]:
    return [replace(rows[0], is_start=True), *rows[1:]] if rows else []


def lay_out_words(lines: Sequence[DiffLine], shared: Shared) -> list[WordRow]:
    """The new text, with what was taken out and put in where it stood."""
    rows: list[WordRow] = []
    for same, removed, added in split_runs(lines):
        rows += [WordRow(" ", [row], row.html) for row in (make_row(line, shared) for line in same)]
        if removed or added:
            rows += _join_words(removed, added, shared)
    return rows


def _join_words(removed: list[DiffLine], added: list[DiffLine], shared: Shared) -> Iterator[WordRow]:
    if len(removed) + len(added) > _LONGEST_TEXT:
        for at, beside in pair_lines([line.text for line in removed], [line.text for line in added]):
            before = [] if at is None else [removed[at]]
            yield from _join_words(before, [] if beside is None else [added[beside]], shared)
        return
    old, new = _join_lines(removed), _join_lines(added)
    is_long = any(len(line.text) > LONGEST_SHOWN for line in (*removed, *added))
    changes = None if is_long or not removed or not added else compare_words(old, new, _ALIKE_RUNS)
    if changes is None:
        rows = _mark_start([make_row(line, shared) for line in (*removed, *added)])
        for row in rows:
            tag = "del" if row.kind == "-" else "ins"
            yield WordRow(row.kind, [row], format_html("<{0}>{1}</{0}>", tag, row.html), row.is_start)
        return
    rows = [make_row(line, shared) for line in (*removed, *added)]
    sides = _Coloured(old, _join_colours(removed, shared)), _Coloured(new, _join_colours(added, shared))
    yield WordRow("*", rows, _render_changes(*sides, changes), is_start=True)


def _join_lines(lines: Sequence[DiffLine]) -> str:
    return "\n".join(line.text for line in lines)


def _join_colours(lines: Sequence[DiffLine], shared: Shared) -> list[Colour]:
    joined: list[Colour] = []
    at = 0
    for line in lines:
        joined += [(start + at, end + at, css) for start, end, css in shared.colours(line)]
        at += len(line.text) + 1
    return joined


@dataclass(frozen=True)
class _Coloured:
    """A text of several lines with its colours, of which pieces are rendered."""

    text: str
    colours: list[Colour]

    def render(self, span: Span, tag: str = "") -> str:
        """A piece; the end of a line that changed is seen, and breaks no line where only it was taken out."""
        piece = self.text[slice(*span)]
        sign = '<span class="line-end">↵</span>' if tag else ""
        end = sign if tag == "del" and not piece.strip() else f"{sign}\n"
        return end.join(self._render_lines(*span))

    def _render_lines(self, start: int, end: int) -> Iterator[str]:
        while True:
            stop = self.text.find("\n", start, end)
            last = end if stop < 0 else stop
            yield render_line(self.text[start:last], self._find_colours(start, last))
            if stop < 0:
                return
            start = stop + 1

    def _find_colours(self, start: int, end: int) -> list[Colour]:
        found: list[Colour] = []
        for at in range(bisect_right(self.colours, start, key=itemgetter(1)), len(self.colours)):
            first, last, css = self.colours[at]
            if first >= end:
                break
            found.append((max(first, start) - start, min(last, end) - start, css))
        return found


def _render_changes(old: _Coloured, new: _Coloured, changes: WordChanges) -> SafeString:
    pieces: list[str] = []
    for is_same, left, right in changes.pieces:
        if is_same:
            pieces.append(new.render(right))
            continue
        pieces += [f"<del>{old.render(left, 'del')}</del>"] if left[0] < left[1] else []
        pieces += [f"<ins>{new.render(right, 'ins')}</ins>"] if right[0] < right[1] else []
    return mark_safe("".join(pieces))  # noqa: S308  every piece is escaped where it is made
