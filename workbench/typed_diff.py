"""The diff of a text that is in no commit yet: what somebody has typed, against a version of the file."""

from collections.abc import Iterator
from difflib import SequenceMatcher

from harness_repo.git.diffs import DiffLine, FileDiff, Hunk

_CONTEXT = 3


def diff_texts(path: str, old: str | None, new: str | None, old_path: str = "") -> FileDiff | None:
    """One file's change as data, in the shape of git's; None is no file. Returns None where nothing changes."""
    is_moved = bool(old_path) and old_path != path
    if old == new and not is_moved:
        return None
    status = "added" if old is None else "removed" if new is None else "renamed" if is_moved else "modified"
    hunks = list(_list_hunks(_split(old), _split(new)))
    return FileDiff(path, status, hunks, old_path if is_moved and old is not None else None)


def _split(text: str | None) -> list[str]:
    """Lines with their ends; only LF ends one."""
    if not text:
        return []
    parts = text.split("\n")
    whole = [f"{part}\n" for part in parts[:-1]]
    return [*whole, parts[-1]] if parts[-1] else whole


def _list_hunks(old: list[str], new: list[str]) -> Iterator[Hunk]:
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT):
        lines: list[DiffLine] = []
        for tag, *ends in group:
            lines += _list_lines(tag, old, new, *ends)
        first, last = group[0], group[-1]
        ranges = _write_range(first[1], last[2]), _write_range(first[3], last[4])
        yield Hunk(f"@@ -{ranges[0]} +{ranges[1]} @@", lines)


def _list_lines(tag: str, old: list[str], new: list[str], *ends: int) -> Iterator[DiffLine]:
    old_from, old_to, new_from, new_to = ends
    if tag == "equal":
        for step, line in enumerate(old[old_from:old_to], 1):
            yield DiffLine(" ", old_from + step, new_from + step, *_read(line))
        return
    for number, line in enumerate(old[old_from:old_to], old_from + 1):
        yield DiffLine("-", number, None, *_read(line))
    for number, line in enumerate(new[new_from:new_to], new_from + 1):
        yield DiffLine("+", None, number, *_read(line))


def _read(line: str) -> tuple[str, bool]:
    return line.removesuffix("\n"), line.endswith("\n")


def _write_range(start: int, end: int) -> str:
    """As git writes it: the first line, from 1, and how many; no lines stand after the one before."""
    return f"{start + 1 if end > start else start},{end - start}"
