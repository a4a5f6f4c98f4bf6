"""Decisions about the lines of a diff: which belong together, which differ in white space only, which only moved."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from harness_repo.git.diffs import DiffLine, FileDiff, Hunk
from workbench.word_changes import ALIKE, TOKEN

# Removed lines and added ones, as places in either list; None where nothing stands beside.
Pair = tuple[int | None, int | None]
# A side of a file and a line of it.
Place = tuple[str, int]

# Pairs of lines whose likeness is looked at in one run of changes; a longer one is paired in order.
MOST_PAIRS = 900
# Shorter lines (`---`, a bracket, an empty item) are everywhere, and say nothing when they come again.
SHORTEST_MOVED = 12


def split_runs(lines: Iterable[DiffLine]) -> Iterator[tuple[list[DiffLine], list[DiffLine], list[DiffLine]]]:
    """Lines as runs: (context, [], []), or ([], removed, added)."""
    same: list[DiffLine] = []
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in lines:
        if (
            (same and line.kind != " ")
            or ((removed or added) and line.kind == " ")
            or (added and line.kind == "-")
        ):
            yield same, removed, added
            same, removed, added = [], [], []
        {" ": same, "-": removed, "+": added}[line.kind].append(line)
    if same or removed or added:
        yield same, removed, added


def pair_lines(removed: Sequence[str], added: Sequence[str]) -> list[Pair]:
    """Which removed line became which added one, in order: as alike as they can be, and never crossing."""
    if not removed or not added or len(removed) * len(added) > MOST_PAIRS or len(removed) == len(added) == 1:
        return _pair_in_order(range(len(removed)), range(len(added)))
    old, new = [_count_tokens(text) for text in removed], [_count_tokens(text) for text in added]
    likeness = [[_likeness(left, right) for right in new] for left in old]
    pairs: list[Pair] = []
    i = j = 0
    for at, beside in [*_align(likeness), (len(removed), len(added))]:
        # Before a pair, what has no partner: beside each other, to take less room.
        pairs += [(each, None) for each in range(i, at)] + [(None, each) for each in range(j, beside)]
        i, j = at + 1, beside + 1
        if at < len(removed):
            pairs.append((at, beside))
    return pairs


def _pair_in_order(removed: range, added: range) -> list[Pair]:
    both = min(len(removed), len(added))
    pairs: list[Pair] = list(zip(removed[:both], added[:both], strict=True))
    return [*pairs, *((each, None) for each in removed[both:]), *((None, each) for each in added[both:])]


def _count_tokens(text: str) -> Counter[str]:
    return Counter(token for token in TOKEN.findall(text) if not token.isspace())


def _likeness(left: Counter[str], right: Counter[str]) -> float:
    """The share of tokens that both have, 0-1; 0 for lines that are not alike enough to be the same one."""
    total = left.total() + right.total()
    share = 2 * (left & right).total() / total if total else 1.0
    return share if share >= ALIKE else 0.0


def _align(likeness: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """The pairs, in order on both sides, whose likeness is most together."""
    height, width = len(likeness), len(likeness[0])
    best = [[0.0] * (width + 1) for _ in range(height + 1)]
    for i in range(height - 1, -1, -1):
        for j in range(width - 1, -1, -1):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], likeness[i][j] + best[i + 1][j + 1])
    pairs, i, j = [], 0, 0
    while i < height and j < width:
        if likeness[i][j] and best[i][j] == likeness[i][j] + best[i + 1][j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return pairs


def flatten_space(text: str) -> str:
    """A line as it is compared without regard to white space: runs of it are one blank, none at the ends."""
    return " ".join(text.split())


def hide_space(file: FileDiff) -> tuple[FileDiff, int]:
    """The changes without those of white space only, and how many lines these were (counted on the new side)."""
    hunks = []
    hidden = 0
    for hunk in file.hunks:
        lines = [each for run in split_runs(hunk.lines) for each in _hide_in_run(*run)]
        hidden += sum(line.kind == " " for line in lines) - sum(line.kind == " " for line in hunk.lines)
        if any(line.kind != " " for line in lines):
            hunks.append(Hunk(hunk.header, lines))
    return (replace(file, hunks=hunks), hidden) if hidden else (file, 0)


def _hide_in_run(same: list[DiffLine], removed: list[DiffLine], added: list[DiffLine]) -> Iterator[DiffLine]:
    yield from same
    waiting: list[DiffLine] = []
    for at, beside in pair_lines([line.text for line in removed], [line.text for line in added]):
        old = None if at is None else removed[at]
        new = None if beside is None else added[beside]
        if old and new and flatten_space(old.text) == flatten_space(new.text):
            yield from waiting
            yield replace(new, kind=" ", old=old.old)
            waiting = []
        else:
            waiting = _insert(waiting, old, new)
    yield from waiting


def _insert(waiting: list[DiffLine], old: DiffLine | None, new: DiffLine | None) -> list[DiffLine]:
    """Removed lines before the added ones, as git has them."""
    first = [line for line in waiting if line.kind == "-"] + ([old] if old else [])
    return first + [line for line in waiting if line.kind == "+"] + ([new] if new else [])


def count_changed_ends(file: FileDiff) -> int:
    """Lines that are the same but for the CR before their LF."""
    count = 0
    for hunk in file.hunks:
        for _, removed, added in split_runs(hunk.lines):
            old = Counter(line.text for line in removed)
            count += sum((old & Counter(_other_end(line.text) for line in added)).values())
    return count


def _other_end(text: str) -> str:
    return text.removesuffix("\r") if text.endswith("\r") else f"{text}\r"


def find_moves(files: Iterable[FileDiff]) -> dict[tuple[str, str, int], Place]:
    """Lines that were taken out at one place and put in, the same, at another: (path, side, line) -> where it is now
    or was. A line that comes more than once on a side is left out: nobody could say which one moved."""
    removed: dict[str, list[Place]] = {}
    added: dict[str, list[Place]] = {}
    for file in files:
        for line in (line for hunk in file.hunks for line in hunk.lines if line.kind != " "):
            text = line.text.strip()
            if len(text) >= SHORTEST_MOVED:
                side, number = (removed, line.old) if line.kind == "-" else (added, line.new)
                side.setdefault(text, []).append((file.path, number or 0))
    moves: dict[tuple[str, str, int], Place] = {}
    for text, places in removed.items():
        others = added.get(text, [])
        if len(places) == len(others) == 1:
            moves[(places[0][0], "old", places[0][1])] = others[0]
            moves[(others[0][0], "new", others[0][1])] = places[0]
    return moves
