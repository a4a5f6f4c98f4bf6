"""A parsed diff as rows of a table, with the changed words of paired lines marked."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.utils.safestring import SafeString

from harness_repo.git.diffs import DiffLine, FileDiff, Hunk
from workbench.text_marks import has_hidden, mark_words, reveal


@dataclass(frozen=True)
class DiffRow:
    """One line of a diff: `kind` is "+", "-" or " "; numbers are None on the side where it does not stand."""

    kind: str
    old: int | None
    new: int | None
    html: SafeString
    has_hidden: bool


@dataclass(frozen=True)
class HunkView:
    """A hunk's header and rows."""

    header: str
    rows: list[DiffRow]


@dataclass(frozen=True)
class FileView:
    """The changes of one file."""

    path: str
    status: str
    added: int
    removed: int
    hunks: list[HunkView] = field(default_factory=list)

    @property
    def has_hidden(self) -> bool:
        """Whether an added line holds a hidden or bidirectional character."""
        return any(row.has_hidden and row.kind == "+" for hunk in self.hunks for row in hunk.rows)


def view_diff(files: list[FileDiff]) -> list[FileView]:
    """Prepare a diff for the page."""
    return [_view_file(file) for file in files]


def _view_file(file: FileDiff) -> FileView:
    lines = [line for hunk in file.hunks for line in hunk.lines]
    return FileView(
        path=file.path,
        status=file.status,
        added=sum(line.kind == "+" for line in lines),
        removed=sum(line.kind == "-" for line in lines),
        hunks=[HunkView(hunk.header, list(_view_lines(hunk))) for hunk in file.hunks],
    )


def _view_lines(hunk: Hunk) -> Iterator[DiffRow]:
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in hunk.lines:
        if line.kind == "-" and not added:
            removed.append(line)
        elif line.kind == "+":
            added.append(line)
        else:
            yield from _view_change(removed, added)
            removed, added = ([line], []) if line.kind == "-" else ([], [])
            if line.kind != "-":
                yield _row(line, reveal(line.text))
    yield from _view_change(removed, added)


def _view_change(removed: list[DiffLine], added: list[DiffLine]) -> Iterator[DiffRow]:
    """Removed lines, then added ones; the n-th removed line is compared with the n-th added one."""
    pairs = [mark_words(old.text, new.text) for old, new in zip(removed, added, strict=False)]
    for place, line in enumerate(removed):
        yield _row(line, pairs[place][0] if place < len(pairs) else reveal(line.text))
    for place, line in enumerate(added):
        yield _row(line, pairs[place][1] if place < len(pairs) else reveal(line.text))


def _row(line: DiffLine, html: SafeString) -> DiffRow:
    return DiffRow(line.kind, line.old, line.new, html, has_hidden(line.text))
