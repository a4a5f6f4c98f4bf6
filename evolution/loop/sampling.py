"""Beside stage 3: which members of a cluster a model is shown. Typical ones, some at the edge, none twice.

Decides purely; what may be shown at all is for `visibility`.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

# Of the sample, this part is the strongest members; the rest is the weakest, where the cluster's edge shows.
EXEMPLARS = 2 / 3
# Jaccard likeness of the character pairs of two texts, digits aside, from which they say the same.
ALIKE = 0.85
# So many of one kind come before the next kind has its turn.
OF_ONE_KIND = 2

Item = TypeVar("Item")


@dataclass
class _Chosen:
    """What was taken so far."""

    rows: list[int] = field(default_factory=list)
    kinds: Counter[Hashable] = field(default_factory=Counter)


def choose_sample(
    members: Sequence[Item],
    size: int,
    *,
    text_of: Callable[[Item], str],
    kind_of: Callable[[Item], Hashable],
) -> list[Item]:
    """At most `size` of the members, which come the strongest first, and in that order.

    Near-identical ones are taken once, other kinds (categories, versions) sooner than more of the same. Fewer than
    `size` only where there are no others.
    """
    if size <= 0:
        return []
    pairs = [character_pairs(text_of(member)) for member in members]
    kinds = [kind_of(member) for member in members]
    chosen = _Chosen()
    strongest = list(range(len(members)))
    exemplars = max(1, round(size * EXEMPLARS))
    _take(chosen, strongest, exemplars, pairs, kinds)
    _take(chosen, strongest[::-1], size, pairs, kinds)
    return [members[row] for row in sorted(chosen.rows)]


def _take(
    chosen: _Chosen,
    order: Sequence[int],
    until: int,
    pairs: Sequence[frozenset[str]],
    kinds: Sequence[Hashable],
) -> None:
    """Take rows in that order until there are so many; a kind that was taken often waits."""
    left = [row for row in order if row not in chosen.rows]
    while left and len(chosen.rows) < until:
        place = min(range(len(left)), key=lambda at: (chosen.kinds[kinds[left[at]]] // OF_ONE_KIND, at))
        row = left.pop(place)
        if not any(_alike(pairs[row], pairs[other]) for other in chosen.rows):
            chosen.rows.append(row)
            chosen.kinds[kinds[row]] += 1


def character_pairs(text: str) -> frozenset[str]:
    """The pairs of neighbouring letters of a text, digits and punctuation aside; never empty."""
    plain = "".join(character for character in text.casefold() if character.isalpha())
    return frozenset(plain[at : at + 2] for at in range(len(plain) - 1)) or frozenset({plain})


def _alike(one: frozenset[str], other: frozenset[str]) -> bool:
    return len(one & other) >= ALIKE * len(one | other)
