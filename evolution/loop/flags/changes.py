"""Which lines a change adds and takes away, file by file; a file that was renamed is compared with what it was."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property

from harness_repo.format.textfile import MAX_FILE_BYTES, read_text

# Lines in common from which a new file counts as an old one renamed; the share of the longer one's.
ALIKE = 0.5
# More lines than this are compared only at their ends: everything between counts as changed.
MOST_COMPARED = 4_000
# More new files are not looked for among the old ones.
MOST_RENAMES = 200


@dataclass(frozen=True)
class Line:
    """A line of a version; `number` is 1-based."""

    number: int
    text: str


@dataclass(frozen=True)
class FileChange:
    """One file that differs; a path is "" where there is no such file, a text None where it is none."""

    old_path: str
    new_path: str
    old_data: bytes = b""
    new_data: bytes = b""

    @cached_property
    def old_lines(self) -> list[str]:
        """The lines before; none for what is no text."""
        return _lines_of(self.old_path, self.old_data)

    @cached_property
    def new_lines(self) -> list[str]:
        """The lines after."""
        return _lines_of(self.new_path, self.new_data)

    @cached_property
    def added(self) -> list[Line]:
        """The lines that the change puts in, by number."""
        return [Line(at + 1, self.new_lines[at]) for at in self._spans[1]]

    @cached_property
    def removed(self) -> list[Line]:
        """The lines that it takes away, by number."""
        return [Line(at + 1, self.old_lines[at]) for at in self._spans[0]]

    @cached_property
    def _spans(self) -> tuple[list[int], list[int]]:
        return _differing(self.old_lines, self.new_lines)


def list_changes(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> list[FileChange]:
    """The files that differ, by path; what was only renamed is in it too."""
    gone = {path: data for path, data in base.items() if path not in head}
    new = {path: data for path, data in head.items() if path not in base}
    renames = _find_renames(gone, new)
    changes = [
        FileChange(path, path, data, head[path])
        for path, data in base.items()
        if head.get(path, data) != data
    ]
    changes += [FileChange(old, path, gone[old], new[path]) for path, old in renames.items()]
    changes += [FileChange("", path, b"", data) for path, data in new.items() if path not in renames]
    left = gone.keys() - renames.values()
    changes += [FileChange(path, "", gone[path]) for path in left]
    return sorted(changes, key=lambda change: change.new_path or change.old_path)


def _find_renames(gone: Mapping[str, bytes], new: Mapping[str, bytes]) -> dict[str, str]:
    """New path -> old path: first those with the same content, then the most alike."""
    if not gone or not new or max(len(gone), len(new)) > MOST_RENAMES:
        return {}
    alike = sorted(
        ((_likeness(gone[old], new[path]), path, old) for path in new for old in gone),
        key=lambda one: (-one[0], one[1], one[2]),
    )
    found: dict[str, str] = {}
    for likeness, path, old in alike:
        if likeness >= ALIKE and path not in found and old not in found.values():
            found[path] = old
    return found


def _likeness(old: bytes, new: bytes) -> float:
    if old == new:
        return 1
    if max(len(old), len(new)) > MAX_FILE_BYTES:
        return 0
    lines, others = Counter(old.splitlines()), Counter(new.splitlines())
    return (lines & others).total() / max(lines.total(), others.total(), 1)


def _lines_of(path: str, data: bytes) -> list[str]:
    if not path or not data:
        return []
    text, _ = read_text(path, data)
    return text.removesuffix("\n").split("\n") if text else []


def _differing(old: list[str], new: list[str]) -> tuple[list[int], list[int]]:
    """Numbers (0-based) of the lines of each side that the other has not."""
    start = _common(zip(old, new, strict=False))
    end = _common(zip(reversed(old[start:]), reversed(new[start:]), strict=False))
    inner_old, inner_new = old[start : len(old) - end], new[start : len(new) - end]
    if max(len(inner_old), len(inner_new)) > MOST_COMPARED:
        return list(range(start, len(old) - end)), list(range(start, len(new) - end))
    gone: list[int] = []
    added: list[int] = []
    matcher = SequenceMatcher(None, inner_old, inner_new, autojunk=False)
    for operation, i, i_end, j, j_end in matcher.get_opcodes():
        if operation != "equal":
            gone += range(start + i, start + i_end)
            added += range(start + j, start + j_end)
    return gone, added


def _common(pairs: Iterable[tuple[str, str]]) -> int:
    count = 0
    for one, other in pairs:
        if one != other:
            break
        count += 1
    return count
