"""A file that two sides changed, merged by git line by line: what is settled, and where the sides clash."""

import re
import tempfile
from pathlib import Path
from typing import NamedTuple

from harness_repo.git.gitio import GitRunner

_MARKS = re.compile(rb"^(<+|\|+|=+|>+)", re.MULTILINE)
# As git counts lines: whatever else may end one elsewhere is a part of it.
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")


class Sides(NamedTuple):
    """One file as the base and both sides have it; empty where it does not exist."""

    base: bytes
    ours: bytes
    theirs: bytes


class Clash(NamedTuple):
    """One run of lines that both sides changed, as each has it."""

    base: bytes
    ours: bytes
    theirs: bytes


def split_lines(data: bytes) -> list[bytes]:
    """The lines of a text with their ends."""
    return _LINE.findall(data)


def merge_lines(git: GitRunner, sides: Sides) -> list[bytes | Clash]:
    """The parts of the merged file in order."""
    # Longer than any run of the signs in the files, so that no line of theirs can be taken for a mark.
    size = 1 + max((len(run) for side in sides for run in _MARKS.findall(side)), default=6)
    parts = _split_marked(_merge_file(git, sides, size), size)
    if parts and isinstance(parts[-1], Clash):
        parts[-1] = without_added_ends(parts[-1], sides)
    return parts


def _merge_file(git: GitRunner, sides: Sides, size: int) -> bytes:
    """The file with the marks of its conflicts; git merge-file works on files only."""
    with tempfile.TemporaryDirectory(prefix="harness-merge-") as folder:
        names = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for name, data in zip(names, (sides.ours, sides.base, sides.theirs), strict=True):
            name.write_bytes(data)
        arguments = ("merge-file", "-p", "--zdiff3", f"--marker-size={size}", *map(str, names))
        # The exit code is the number of conflicts, at most 127.
        return git.run(*arguments, allowed=range(128)).out


def _split_marked(data: bytes, size: int) -> list[bytes | Clash]:
    # By the sign that opens a part; the closing one ends the clash. Settled lines stand by the empty sign.
    texts: dict[bytes, list[bytes]] = {}
    parts: list[bytes | Clash] = []
    sign = b""
    for line in split_lines(data):
        mark = line[:1] if _is_mark(line, size) else b""
        if mark == b"<" and texts:
            parts.append(b"".join(texts.pop(b"")))
        if mark == b">":
            base, ours, theirs = (b"".join(texts.pop(key, ())) for key in (b"|", b"<", b"="))
            parts.append(Clash(base, ours, theirs))
        if mark:
            sign = mark if mark != b">" else b""
        else:
            texts.setdefault(sign, []).append(line)
    return [*parts, b"".join(texts[b""])] if texts else parts


def _is_mark(line: bytes, size: int) -> bool:
    return line[:1] in (b"<", b"|", b"=", b">") and line.startswith(line[:1] * size)


def without_added_ends(clash: Clash, sides: Sides) -> Clash:
    """Git ends a last line that has no end, so that a mark can follow."""
    return Clash(*map(_as_in, clash, sides))


def _as_in(text: bytes, whole: bytes) -> bytes:
    if whole.endswith(b"\n") or not text:
        return text
    bare = text.removesuffix(b"\n")
    return bare if whole.endswith(bare) else bare.removesuffix(b"\r")
