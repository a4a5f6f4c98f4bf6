"""What of a file is shown: runs of changed lines with what is folded between them, and a part of these."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness_repo.git.diffs import DiffLine, FileDiff
from workbench.diff_view.lines import split_runs
from workbench.diff_view.rows import PART_ROWS, STEP, Gap, Sources

_LONGEST_RUN = PART_ROWS // 5


@dataclass(frozen=True)
class Run:
    """The lines of a hunk and the gap before it; without a header it goes on where the one before ended."""

    header: str
    lines: list[DiffLine]
    gap: Gap | None = None


@dataclass(frozen=True)
class Texts:
    """Both versions of a file by lines, as far as they are known."""

    old: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)


def read_texts(file: FileDiff, sources: Sources) -> Texts:
    """The lines of both versions, as git counts them."""
    return Texts(_split(sources.base, file.old_path or file.path), _split(sources.head, file.path))


def _split(files: Mapping[str, bytes], path: str) -> list[str]:
    data = files.get(path, b"")
    lines = data.decode("utf-8", "replace").split("\n") if data else []
    return lines[:-1] if lines and not lines[-1] else lines


def fold(file: FileDiff, texts: Texts) -> tuple[list[Run], Gap | None]:
    """The hunks of a file as runs, and what is folded after the last of them."""
    runs: list[Run] = []
    old = new = 1
    for hunk in file.hunks:
        first_old = next((line.old for line in hunk.lines if line.old is not None), old)
        first_new = next((line.new for line in hunk.lines if line.new is not None), new)
        # On a side that has no line in the hunk the counting goes on as on the other.
        count = max(first_old - old, first_new - new) if hunk.lines else 0
        gap = Gap(new, new + count - 1, new - old, is_first=not runs) if count > 0 else None
        runs.append(Run(hunk.header, interleave(hunk.lines), gap))
        old += count + sum(line.kind != "+" for line in hunk.lines)
        new += count + sum(line.kind != "-" for line in hunk.lines)
    left = len(texts.new) - new + 1
    tail = (
        Gap(new, len(texts.new), new - old, is_first=not runs, is_last=True)
        if left > 0 and texts.old
        else None
    )
    return runs, tail


def unfold(runs: Sequence[Run], tail: Gap | None, texts: Texts) -> list[Run]:
    """The same with every gap filled, as one run."""
    lines: list[DiffLine] = []
    for run in runs:
        lines += [*fill(run.gap, texts), *run.lines]
    return [Run("", [*lines, *fill(tail, texts)])]


def fill(gap: Gap | None, texts: Texts) -> list[DiffLine]:
    """The lines of a gap; as many as the file is known to have."""
    if gap is None:
        return []
    numbers = range(gap.first, min(gap.last, len(texts.new)) + 1)
    return [DiffLine(" ", number - gap.shift, number, texts.new[number - 1]) for number in numbers]


def interleave(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """The same lines, but where more were replaced than a part holds, piece by piece: old and new stay together."""
    found: list[DiffLine] = []
    for same, removed, added in split_runs(lines):
        pieces = 1 + (len(removed) + len(added)) // _LONGEST_RUN if removed and added else 1
        found += same
        for piece in range(pieces):
            for side in (removed, added):
                found += side[len(side) * piece // pieces : len(side) * (piece + 1) // pieces]
    return found


def list_gaps(runs: Iterable[Run], tail: Gap | None) -> list[Gap]:
    """All that is folded in a file."""
    return [gap for gap in (*(run.gap for run in runs), tail) if gap is not None]


def narrow(gap: Gap, first: int, last: int, show: str) -> tuple[Gap | None, Gap, Gap | None]:
    """What stays folded of the lines `first` to `last` of a gap, what is shown, what stays folded below.

    `show`: "up", a step below the change above; "down", one above the change below; else all.
    """
    asked = replace(gap, first=max(first, gap.first), last=min(last, gap.last))
    start, end = asked.first, asked.last
    if show == "up":
        end = min(end, start + STEP - 1)
    elif show == "down":
        start = max(start, end - STEP + 1)
    above = replace(asked, last=start - 1) if start > asked.first else None
    below = replace(asked, first=end + 1) if end < asked.last else None
    return above, replace(asked, first=start, last=end), below


def cut_runs(runs: Iterable[Run], start: int, most: int) -> list[Run]:
    """The runs from row `start` on, `most` rows of them; a run that is cut has its header where it begins."""
    kept: list[Run] = []
    at = 0
    for run in runs:
        first, last = max(start - at, 0), min(start + most - at, len(run.lines))
        if first < last:
            lines = run.lines[first:last]
            kept.append(Run(run.header, lines, run.gap) if first == 0 else Run("", lines))
        at += len(run.lines)
    return kept
