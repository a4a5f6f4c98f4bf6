"""What a diff is on the page: files, runs of rows and the folds between them; plain records."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from django.utils.safestring import SafeString

Side = Literal["old", "new"]
Layout = Literal["unified", "split", "words"]

# Lines that one step of unfolding shows, and rows that one step of a long file brings.
STEP = 20
PART_ROWS = 1_000


def line_key(path: str, side: str, line: int) -> str:
    """The name under which notes on a line are kept; line 0 is the file as a whole."""
    return f"{path}\0{side}\0{line}"


@dataclass(frozen=True)
class Sources:
    """The files of both versions as bytes, for colours and for the lines that a diff leaves out; may be empty."""

    base: Mapping[str, bytes] = field(default_factory=dict)
    head: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True)
class DiffRow:
    """One line of a diff: `kind` is "+", "-" or " "; numbers are None on the side where it does not stand."""

    kind: str
    old: int | None
    new: int | None
    text: str
    html: SafeString
    has_hidden: bool
    path: str
    # Before, where the file had another name.
    old_path: str
    # Of the file on the page, from 1.
    file: int
    has_newline: bool = True
    # Characters of a long line that are not shown: before and after those that are.
    cut_before: int = 0
    cut_after: int = 0
    # Where the same line stands on the other side, when it only moved: a path and a line.
    moved: tuple[str, int] | None = None
    # The first of a run of changed rows: where the keys to the next and the previous change lead.
    is_start: bool = False
    notes: list[Any] = field(default_factory=list)

    @property
    def side(self) -> Side:
        """Where a note on this row belongs."""
        return "old" if self.kind == "-" else "new"

    @property
    def line(self) -> int:
        """Its number on that side."""
        return (self.old if self.kind == "-" else self.new) or 0

    @property
    def key(self) -> str:
        """The name of notes on this row."""
        return line_key(self.path, self.side, self.line)

    @property
    def keys(self) -> list[str]:
        """All names of notes that belong under this row."""
        return list_keys(self.path, self.old_path, self.old, self.new)

    @property
    def anchor(self) -> str:
        """The id of the row on the page."""
        return f"{self.file}-{self.side}-{self.line}"

    @property
    def css(self) -> str:
        """The class of the row."""
        return {"+": "add", "-": "del"}.get(self.kind, "same")

    @property
    def is_cut(self) -> bool:
        """Whether characters of the line are left out."""
        return bool(self.cut_before or self.cut_after)


def list_keys(path: str, old_path: str, old: int | None, new: int | None) -> list[str]:
    """The names of notes on a line that has these numbers; a side that has none is left out."""
    keys = [] if new is None else [line_key(path, "new", new)]
    if old is not None:
        keys += [line_key(each, "old", old) for each in dict.fromkeys((path, old_path))]
    return keys


@dataclass(frozen=True)
class SplitRow:
    """Two lines side by side; one of them may be missing. A context line is the same row twice."""

    left: DiffRow | None
    right: DiffRow | None

    @property
    def noted(self) -> list[tuple[DiffRow, Any]]:
        """What is to be shown under the row, each with the line that it is about."""
        rows = [row for row in (self.left, self.right) if row is not None]
        if len(rows) == 2 and rows[0] is rows[1]:
            rows = rows[:1]
        return [(row, note) for row in rows for note in row.notes]

    @property
    def row(self) -> DiffRow | None:
        """The row that a note form gets: the new side's, or the only one."""
        return self.right or self.left

    @property
    def is_start(self) -> bool:
        """Whether a run of changes begins here."""
        return any(row.is_start for row in (self.left, self.right) if row is not None)


@dataclass(frozen=True)
class WordRow:
    """One or more lines in one, with what was taken out and put in where it stood."""

    kind: str
    # The lines of either side that are in it.
    lines: list[DiffRow]
    html: SafeString
    is_start: bool = False

    @property
    def noted(self) -> list[tuple[DiffRow, Any]]:
        """What is to be shown under the row, each with the line that it is about."""
        return [(line, note) for line in self.lines for note in line.notes]

    @property
    def row(self) -> DiffRow:
        """The row that stands for all: the last of the new side, or else of the old one."""
        return self.lines[-1]

    @property
    def shown(self) -> list[DiffRow]:
        """The lines whose numbers are shown: those of the new side, where it has any."""
        return [line for line in self.lines if line.kind != "-"] or self.lines


@dataclass(frozen=True)
class Gap:
    """Lines that are the same on both sides and are folded: `first` to `last` of the new side."""

    first: int
    last: int
    # What the old side's number is less than the new one's.
    shift: int
    # Whether there are changes above and below, towards which it can be unfolded in steps.
    is_first: bool = False
    is_last: bool = False

    @property
    def count(self) -> int:
        """How many lines are folded."""
        return self.last - self.first + 1

    @property
    def can_step(self) -> bool:
        """Whether a step would not unfold all of it."""
        return self.count > STEP


@dataclass(frozen=True)
class HunkView:
    """A run of rows, in the layout that was asked for, and what is folded before it."""

    header: str
    gap: Gap | None = None
    rows: list[DiffRow] = field(default_factory=list)
    pairs: list[SplitRow] = field(default_factory=list)
    words: list[WordRow] = field(default_factory=list)


@dataclass(frozen=True)
class FileView:
    """The changes of one file."""

    path: str
    old_path: str
    status: str
    added: int
    removed: int
    number: int
    layout: str
    hunks: list[HunkView] = field(default_factory=list)
    # What is folded after the last change.
    tail: Gap | None = None
    similarity: int | None = None
    old_mode: str = ""
    new_mode: str = ""
    is_binary: bool = False
    # Of a file whose content is binary: bytes before and after, as far as they are known.
    old_size: int | None = None
    new_size: int | None = None
    # Rows that this file has in all, and those that come after the ones here.
    row_count: int = 0
    start: int = 0
    rest: int = 0
    # Lines that differ in white space only, and are shown as if they were the same.
    hidden_space: int = 0
    # Lines whose end changed between LF and CR LF.
    changed_ends: int = 0
    has_hidden: bool = False
    # Of the change: another one when anything of it is another.
    digest: str = ""
    notes: list[Any] = field(default_factory=list)
    # Where more of the file is to be had, with a query; empty when nowhere.
    address: str = ""

    @property
    def key(self) -> str:
        """The name of notes on the file as a whole."""
        return line_key(self.path, "new", 0)

    @property
    def anchor(self) -> str:
        """The id of the file on the page."""
        return f"file-{self.number}"

    @property
    def is_deferred(self) -> bool:
        """Whether nothing of it is shown yet, though there is something."""
        return not self.hunks and self.row_count > 0

    @property
    def start_row(self) -> int:
        """The number of the first row shown, from 1."""
        return self.start + 1

    @property
    def next_start(self) -> int:
        """The first row that is not shown."""
        return self.row_count - self.rest

    @property
    def part_rows(self) -> int:
        """How many of the rest come with the next step."""
        return min(self.rest, PART_ROWS)

    @property
    def has_mode_change(self) -> bool:
        """Whether the file's mode is another one."""
        return self.old_mode != self.new_mode

    @property
    def columns(self) -> int:
        """Cells of a row."""
        return {"unified": 4, "split": 4, "words": 3}[self.layout]
