"""Beside the reviews: when two diffs are the same change, so that whoever approved one has approved the other.

Line numbers say nothing once the base has moved, and lines that stand in a file several times do not say which of
them is meant. So each place counts by the unchanged lines around it, as many as it takes to stand there once.
"""

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from harness_repo.git.diffs import FileDiff, Hunk, parse_diff
from harness_repo.git.errors import MissingRef
from harness_repo.git.repository import HarnessRepository

# What a decoder put where bytes were not text: two different files may look the same.
_UNREADABLE = "\ufffd"
_IDS = ("index ", "similarity index ", "dissimilarity index ")
# As git shows them; doubled until the place is the only one.
_CONTEXT = 3
# The level of what stands under nothing.
_TOP = 0
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]|$)")


class _Digest(Protocol):
    def update(self, data: bytes, /) -> None: ...


@dataclass(frozen=True)
class _Before:
    """A changed file as the base has it."""

    lines: Sequence[str]
    # of each line, how deep it stands; None for one that nothing stands under
    levels: Sequence[int | None]
    # each line between two LF, so that only whole lines are found
    joined: str
    measure: Callable[[str], int | None]


def diff_digest(repository: HarnessRepository, base: str, head: str) -> str:
    """SHA-256 in hex of what is changed from `base` to `head`: paths, modes, changed lines, and where these stand.

    Where a change stands is told by the headings (in other files than Markdown: the less indented lines) above it,
    and by the unchanged lines around it: 3 on each side, or 6, 12, … up to all of the file, until they stand in the
    base's file once. So on one base, equal digests mean equal files. On a base that has moved, the digest stays
    while the base is the same there, wherever else in the file it moved; a place that became ambiguous, or is no
    longer, counts as another. Line numbers and ids of commits and blobs are left out, as in git patch-id; white
    space is not. HarnessRepoError.
    """
    text = repository.diff(base, head)
    digest = hashlib.sha256()
    for line in text.split("\n"):
        # Lines of content begin with a sign, so these are headers.
        if not line.startswith(_IDS):
            _put(digest, "@@" if line.startswith("@@ ") else line)
    for file in parse_diff(text):
        old_path = file.old_path or file.path
        if file.is_binary or _is_unreadable(file):
            for commit, path in ((base, old_path), (head, file.path)):
                digest.update(hashlib.sha256(_read(repository, commit, path)).digest())
        elif file.status in ("modified", "renamed") and file.hunks:
            before = _read_before(repository, base, old_path)
            for hunk in file.hunks:
                _put(digest, "\0".join(("place", *_tell_place(before, hunk))))
    return digest.hexdigest()


def _put(digest: _Digest, text: str) -> None:
    digest.update(f"{text}\n".encode("utf-8", "surrogatepass"))


def _is_unreadable(file: FileDiff) -> bool:
    return any(_UNREADABLE in line.text for hunk in file.hunks for line in hunk.lines)


def _read(repository: HarnessRepository, commit: str, path: str) -> bytes:
    try:
        return repository.read_file(commit, path)
    except MissingRef:
        return b""


def _read_before(repository: HarnessRepository, base: str, path: str) -> _Before:
    lines = _read(repository, base, path).decode("utf-8", "replace").split("\n")
    measure = _heading_level if path.lower().endswith((".md", ".markdown")) else _indentation
    return _Before(lines, [measure(line) for line in lines], _joined(lines), measure)


def _tell_place(before: _Before, hunk: Hunk) -> Iterator[str]:
    """What stands above each run of changes, and the base's lines around the hunk that are there once."""
    for at, text in _list_runs(hunk):
        yield from _list_above(before, at, text)
        yield ""
    old = [line.old for line in hunk.lines if line.old is not None]
    if old:
        start, end = _widen(before, old[0] - 1, old[-1])
        # Where the file's ends cut off what is around, the same lines could hold it at two places.
        yield str(old[0] - 1 - start)
        yield from before.lines[start:end]


def _list_runs(hunk: Hunk) -> Iterator[tuple[int, str]]:
    """How many of the base's lines stand before each run of changes, with the run's first line."""
    before = next((line.old for line in hunk.lines if line.old is not None), 1) - 1
    was_changed = False
    for line in hunk.lines:
        if line.kind != " " and not was_changed:
            yield before, line.text
        was_changed = line.kind != " "
        before += line.old is not None


def _list_above(before: _Before, at: int, text: str) -> Iterator[str]:
    """The headings, or less indented lines, that `text` stands under after the first `at` lines; nearest first."""
    own = before.measure(text)
    level: float = math.inf if own is None else own
    for place in range(min(at, len(before.lines)) - 1, -1, -1):
        if level <= _TOP:
            return
        found = before.levels[place]
        if found is not None and found < level:
            level = found
            yield before.lines[place]


def _heading_level(line: str) -> int | None:
    match = _HEADING.match(line)
    return len(match[1]) - 1 if match else None


def _indentation(line: str) -> int | None:
    """None for an empty line."""
    bare = line.lstrip(" \t")
    return len(line) - len(bare) if bare.strip() else None


def _widen(before: _Before, start: int, end: int) -> tuple[int, int]:
    """From which line to before which the file has those from `start` to before `end`, and no others like them."""
    lines, more = before.lines, _CONTEXT
    while start > 0 or end < len(lines):
        block = _joined(lines[start:end])
        if before.joined.find(block, before.joined.find(block) + 1) < 0:
            break
        start, end, more = max(0, start - more), min(len(lines), end + more), more * 2
    return start, end


def _joined(lines: Sequence[str]) -> str:
    return "\n" + "\n".join(lines) + "\n"
