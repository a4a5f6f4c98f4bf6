"""Diffs of two texts as git writes them, without git: a file, or several, with their sources."""

import difflib
from collections.abc import Mapping

from harness_repo.git.diffs import FileDiff, parse_diff
from workbench.diff_view import Sources

Texts = Mapping[str, tuple[str, str]]


def make_diff(texts: Texts, context: int = 3) -> tuple[list[FileDiff], Sources]:
    """Path -> (before, after), both ending with a line end: the diff, and what it is of."""
    diff = "".join(_write(path, old, new, context) for path, (old, new) in texts.items())
    base = {path: old.encode() for path, (old, _) in texts.items()}
    head = {path: new.encode() for path, (_, new) in texts.items()}
    return parse_diff(diff), Sources(base, head)


def _write(path: str, old: str, new: str, context: int) -> str:
    sides = old.splitlines(keepends=True), new.splitlines(keepends=True)
    lines = difflib.unified_diff(*sides, f"a/{path}", f"b/{path}", n=context)
    return f"diff --git a/{path} b/{path}\n" + "".join(lines)


def number_lines(count: int, changed: Mapping[int, str] = {}) -> str:
    """So many lines, each with its number in it, some of them others."""
    return "".join(f"{changed.get(at, f'line {at}')}\n" for at in range(1, count + 1))
