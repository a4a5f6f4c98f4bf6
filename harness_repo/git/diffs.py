"""A unified diff as data, for people to read: files, hunks, lines with their numbers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from harness_repo.git.quoted import read_pair, unquote

DiffKind = Literal["+", "-", " "]

_HEADER = "diff --git "
_RANGES = re.compile(r"@@ -([0-9]+)(?:,([0-9]+))? \+([0-9]+)(?:,([0-9]+))? @@.*")
_SIMILARITY = re.compile(r"similarity index ([0-9]{1,3})%")
_STATUSES = {
    "new file mode ": "added",
    "deleted file mode ": "removed",
    "rename from ": "renamed",
    "copy from ": "renamed",
}
_NO_NEWLINE = "\\"


@dataclass(frozen=True)
class DiffLine:
    """One line; `old` and `new` are its numbers before and after, None where it does not exist."""

    kind: DiffKind
    old: int | None
    new: int | None
    # Without the line's end: the LF, not a CR before it.
    text: str
    # False for a last line that no LF ends.
    has_newline: bool = True


@dataclass(frozen=True)
class Hunk:
    """One run of lines; `header` is git's @@ line."""

    header: str
    lines: list[DiffLine]


@dataclass(frozen=True)
class FileDiff:
    """One changed file; `status` is added, removed, modified or renamed."""

    path: str
    status: str
    hunks: list[Hunk]
    # The path before, when it is another one.
    old_path: str | None = None
    is_binary: bool = False
    # Of a renamed file, how much stayed the same, in percent.
    similarity: int | None = None
    # As git writes them (100644, 100755, 120000, 160000), where they are not the same.
    old_mode: str = ""
    new_mode: str = ""


def parse_diff(text: str) -> list[FileDiff]:
    """Read git's unified diff, as `HarnessRepository.diff` gives it; ValueError when it is none."""
    lines = _Lines(text.removesuffix("\n").split("\n") if text else [])
    files = []
    while not lines.is_at_end:
        files.append(_read_file(lines))
    return files


@dataclass
class _Lines:
    """The lines of a diff and how far they are read; git ends a line by LF, whatever else stands in it."""

    lines: Sequence[str]
    at: int = 0

    @property
    def is_at_end(self) -> bool:
        return self.at >= len(self.lines)

    def next(self) -> str:
        if self.is_at_end:
            raise ValueError("not a unified diff: it ends in the middle")
        self.at += 1
        return self.lines[self.at - 1]

    def is_next(self, *starts: str) -> bool:
        return not self.is_at_end and self.lines[self.at].startswith(starts)


@dataclass
class _Names:
    """What the lines above the hunks of a file say."""

    old: str
    new: str
    status: str = "modified"
    is_binary: bool = False
    similarity: int | None = None
    old_mode: str = ""
    new_mode: str = ""
    hunks: list[Hunk] = field(default_factory=list)


def _read_file(lines: _Lines) -> FileDiff:
    first = lines.next()
    if not first.startswith(_HEADER):
        raise ValueError(f"not a unified diff: {first[:80]!r}")
    names = _Names(*read_pair(first.removeprefix(_HEADER)))
    while not lines.is_at_end and not lines.is_next(_HEADER):
        if lines.is_next("@@ "):
            names.hunks.append(_read_hunk(lines))
        else:
            _read_header(names, lines.next())
    is_moved = names.status == "renamed"
    path = names.old if names.status == "removed" else names.new
    old_path = names.old if is_moved else None
    extra = (names.is_binary, names.similarity, names.old_mode, names.new_mode)
    return FileDiff(path, names.status, names.hunks, old_path, *extra)


def _read_header(names: _Names, line: str) -> None:
    """Take what one of git's extended header lines says; what is of no interest here is passed over."""
    for start, status in _STATUSES.items():
        if line.startswith(start):
            names.status = status
    if line.startswith(("rename from ", "copy from ")):
        names.old = unquote(line.partition(" from ")[2])
    elif line.startswith(("rename to ", "copy to ")):
        names.new = unquote(line.partition(" to ")[2])
    elif line.startswith(("Binary files ", "GIT binary patch")):
        names.is_binary = True
    else:
        _read_figures(names, line)


def _read_figures(names: _Names, line: str) -> None:
    if found := _SIMILARITY.fullmatch(line):
        names.similarity = int(found[1])
    elif line.startswith("old mode "):
        names.old_mode = line.removeprefix("old mode ")
    elif line.startswith("new mode "):
        names.new_mode = line.removeprefix("new mode ")


def _read_hunk(lines: _Lines) -> Hunk:
    header = lines.next()
    ranges = _RANGES.fullmatch(header.replace("\r", " "))
    if ranges is None:
        raise ValueError(f"not a unified diff: {header[:80]!r}")
    old, old_left, new, new_left = (int(number) if number else 1 for number in ranges.groups())
    found: list[DiffLine] = []
    while old_left or new_left:
        line = lines.next()
        # Some tools take the space off an empty line.
        kind, text = line[:1] or " ", line[1:]
        if kind == _NO_NEWLINE:
            _end_without_newline(found)
            continue
        if kind not in "+- " or (kind != "+" and not old_left) or (kind != "-" and not new_left):
            raise ValueError(f"not a unified diff: {line[:80]!r}")
        if kind == "+":
            found.append(DiffLine("+", None, new, text))
        else:
            found.append(DiffLine("-", old, None, text) if kind == "-" else DiffLine(" ", old, new, text))
        old, old_left = (old + 1, old_left - 1) if kind != "+" else (old, old_left)
        new, new_left = (new + 1, new_left - 1) if kind != "-" else (new, new_left)
    while lines.is_next(_NO_NEWLINE):
        lines.next()
        _end_without_newline(found)
    return Hunk(header, found)


def _end_without_newline(found: list[DiffLine]) -> None:
    if found:
        found[-1] = replace(found[-1], has_newline=False)
