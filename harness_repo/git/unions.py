"""Rules that both sides add at one place of a Markdown file: both stay, ours first, nobody has to decide.

Only below the front matter, where a line more is a rule more; two lines for one key would be neither side's.
"""

from collections.abc import Sequence

from harness_repo.git.gitio import GitRunner
from harness_repo.git.markedfile import Clash, Sides, merge_lines, split_lines, without_added_ends

_BOM = b"\xef\xbb\xbf"


def unite(git: GitRunner, sides: Sides) -> list[bytes | Clash]:
    """The parts of the merged file, as merge_lines, with what both sides add at one place settled: both stay."""
    ended = Sides(*(_end_last_line(side) for side in sides))
    has_front = any(_front(side)[0] for side in ended)
    parts: list[bytes | Clash] = []
    for part in merge_lines(git, ended):
        is_union = isinstance(part, Clash) and not part.base and (not has_front or _is_below_front(parts))
        parts.append(part.ours + part.theirs if is_union and isinstance(part, Clash) else part)
    return _with_last_end(parts, sides)


def _end_last_line(text: bytes) -> bytes:
    """Whether the last line has an end is no difference between two versions of it."""
    if not text or text.endswith(b"\n"):
        return text
    return text + (b"\r\n" if b"\r\n" in text else b"\n")


def _with_last_end(parts: list[bytes | Clash], sides: Sides) -> list[bytes | Clash]:
    """The last line ends as it does on the sides: where either ends it, it has an end."""
    if not parts:
        return parts
    *before, last = parts
    if isinstance(last, Clash):
        return [*before, without_added_ends(last, sides)]
    is_ended = sides.ours.endswith(b"\n") or sides.theirs.endswith(b"\n")
    return [*before, last if is_ended else last.removesuffix(b"\n").removesuffix(b"\r")]


def _is_below_front(parts: Sequence[bytes | Clash]) -> bool:
    """Whether the front matter ends within these first parts, on either side."""
    ours = b"".join(part.ours if isinstance(part, Clash) else part for part in parts)
    theirs = b"".join(part.theirs if isinstance(part, Clash) else part for part in parts)
    return _front(ours)[1] and _front(theirs)[1]


def _front(text: bytes) -> tuple[bytes, bool]:
    """The front matter with its marks, and whether it is closed; all of the text when it is not."""
    lines = split_lines(text.removeprefix(_BOM))
    if not lines or lines[0].rstrip() != b"---":
        return b"", False
    for number, line in enumerate(lines[1:], start=2):
        bare = line.rstrip()
        if bare == b"..." or (len(bare) >= len(b"---") and not bare.strip(b"-")):
            return b"".join(lines[:number]), True
    return text, False
