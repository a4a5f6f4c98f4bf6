"""A unified diff as data, for people to read: files, hunks, lines with their numbers."""

from dataclasses import dataclass
from typing import Literal

from unidiff.errors import UnidiffParseError
from unidiff.patch import Hunk as UnidiffHunk
from unidiff.patch import PatchedFile, PatchSet

DiffKind = Literal["+", "-", " "]


@dataclass(frozen=True)
class DiffLine:
    """One line; `old` and `new` are its numbers before and after, None where it does not exist."""

    kind: DiffKind
    old: int | None
    new: int | None
    # Without the line's end.
    text: str


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


def parse_diff(text: str) -> list[FileDiff]:
    """Read git's unified diff; ValueError when it is none."""
    try:
        return [_file(patched) for patched in PatchSet.from_string(text)]
    except UnidiffParseError as failure:
        raise ValueError(f"not a unified diff: {failure}") from failure


def _file(patched: PatchedFile) -> FileDiff:
    old = patched.source_file.removeprefix("a/")
    return FileDiff(
        path=patched.path,
        status=_status(patched),
        hunks=[_hunk(hunk) for hunk in patched],
        old_path=old if patched.is_rename else None,
        is_binary=patched.is_binary_file,
    )


def _status(patched: PatchedFile) -> str:
    if patched.is_added_file:
        return "added"
    if patched.is_removed_file:
        return "removed"
    return "renamed" if patched.is_rename else "modified"


def _hunk(hunk: UnidiffHunk) -> Hunk:
    section = f" {hunk.section_header}" if hunk.section_header else ""
    ranges = f"-{hunk.source_start},{hunk.source_length} +{hunk.target_start},{hunk.target_length}"
    kinds: dict[str, DiffKind] = {"+": "+", "-": "-", " ": " "}
    lines = [
        DiffLine(kind, line.source_line_no, line.target_line_no, line.value.removesuffix("\n"))
        for line in hunk
        if (kind := kinds.get(line.line_type)) is not None
    ]
    return Hunk(f"@@ {ranges} @@{section}", lines)
