"""Which words of two texts differ; how that is shown is the business of those who ask."""

import difflib
import re
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

# A word, a run of blanks, or a single other character: Chinese is compared character by character.
TOKEN = re.compile(r"[A-Za-z0-9_]+|\s+|.", re.DOTALL)
# Equal pairs of tokens that may be looked at for each token of two texts. Ordinary texts need a fraction of it;
# repetitive ones would take the cube of their length.
PAIRS_PER_TOKEN = 300
# Texts less alike than this have no words in common worth marking.
ALIKE = 0.35

# Start and end of a piece of a text, in characters.
Span = tuple[int, int]
# One run of tokens: where it stands in either list, and whether it is the same there.
Run = tuple[bool, int, int, int, int]


@dataclass(frozen=True)
class WordChanges:
    """What was taken out of the old text, and what was put into the new one: spans in order, none touching."""

    old: list[Span]
    new: list[Span]
    # The texts in pieces, one after the other: whether both have it, and its span in either.
    pieces: list[tuple[bool, Span, Span]]


def compare_words(old: str, new: str, alike: float = ALIKE) -> WordChanges | None:
    """The words that differ; None when less than `alike` (0-1) of the two texts is the same.

    The time it takes grows with the length of the texts and no faster, whatever is in them.
    """
    old_tokens, new_tokens = TOKEN.findall(old), TOKEN.findall(new)
    runs = _find_runs(old_tokens, new_tokens)
    same = sum(end - start for is_same, start, end, _, _ in runs if is_same)
    total = len(old_tokens) + len(new_tokens)
    if total and 2 * same / total < alike:
        return None
    old_at, new_at = _offsets(old_tokens), _offsets(new_tokens)
    pieces = [
        (is_same, (old_at[i], old_at[i_end]), (new_at[j], new_at[j_end]))
        for is_same, i, i_end, j, j_end in _join_runs(runs, old_tokens)
    ]
    changed = [(left, right) for is_same, left, right in pieces if not is_same]
    return WordChanges(
        [left for left, _ in changed if left[0] < left[1]],
        [right for _, right in changed if right[0] < right[1]],
        pieces,
    )


def _offsets(tokens: list[str]) -> list[int]:
    return list(accumulate(map(len, tokens), initial=0))


def _find_runs(old: list[str], new: list[str]) -> list[Run]:
    """Runs that are the same and runs that are not; what the texts begin and end with alike is not searched."""
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    most = shorter - head
    tail = next((at for at in range(most) if old[-1 - at] != new[-1 - at]), most)
    middle = _BoundedMatcher(old[head : len(old) - tail], new[head : len(new) - tail])
    runs: list[Run] = [(True, 0, head, 0, head)] if head else []
    for operation, i, i_end, j, j_end in middle.get_opcodes():
        runs.append((operation == "equal", i + head, i_end + head, j + head, j_end + head))
    if tail:
        runs.append((True, len(old) - tail, len(old), len(new) - tail, len(new)))
    return runs


def _join_runs(runs: list[Run], old: list[str]) -> list[Run]:
    """The same runs, changes with nothing but blanks between them as one: whole phrases read better than crumbs."""
    joined: list[Run] = []
    for at, (is_same, i, i_end, j, j_end) in enumerate(runs):
        is_between = bool(joined) and at + 1 < len(runs)
        is_crumb = is_same and is_between and "".join(old[i:i_end]).strip(" \t") == ""
        if joined and not joined[-1][0] and (is_crumb or not is_same):
            _, first, _, first_new, _ = joined.pop()
            joined.append((False, first, i_end, first_new, j_end))
        else:
            joined.append((is_same, i, i_end, j, j_end))
    return joined


class _BoundedMatcher(difflib.SequenceMatcher[str]):
    """Finds what is equal like its parent until its work is used up; what is left then counts as different."""

    def __init__(self, old: list[str], new: list[str]) -> None:
        super().__init__(None, old, new, autojunk=False)
        self.work_left = PAIRS_PER_TOKEN * (len(old) + len(new))
        self.length = len(old)
        places = Counter(new)
        self.work_before = list(accumulate((1 + places[token] for token in old), initial=0))

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """The longest equal run within the two ranges; an empty one when the work is used up."""
        self.work_left -= self.work_before[self.length if ahi is None else ahi] - self.work_before[alo]
        if self.work_left < 0:
            return difflib.Match(alo, blo, 0)
        return super().find_longest_match(alo, ahi, blo, bhi)
