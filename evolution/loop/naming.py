"""Names a cluster by the terms that tell it from the others (class-based TF-IDF), until a diagnosis names it.

A term's weight is the share of the cluster's texts that have it, times log(all texts / texts that have it).
Chinese is taken in runs of two to six characters, everything else in words.
"""

import math
import re
from collections import Counter
from collections.abc import Sequence

TERMS = 3
# Words that say nothing about a failure.
_EMPTY_WORDS = """
about after all also and any are as at be been but by can could did do does don't for from get had has have
help her here hello hi his how i'd i'll i'm i've into is isn't it's its just let like may might need not now
off once one only our out please really should so some than thank thanks that that's the their them then
there these they this those too was want were what when where which who why will with would yes yet you
you're your
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())
# Characters that a Chinese term neither starts nor ends with.
_PARTICLES = frozenset(
    "的了吗呢吧啊呀哦哈是在有和与就都也还很这那个么怎什哪几能可会要我你他她它们请把给到不没多少为以"
)
_RUN = re.compile(r"[\u4e00-\u9fff]+|[a-z][a-z'-]{2,}")


def name_clusters(texts: Sequence[str], labels: Sequence[int]) -> dict[int, str]:
    """Return a name for each label but -1; a cluster without a telling term has the empty name."""
    found = [_terms(text) for text in texts]
    everywhere = Counter(term for terms in found for term in terms)
    names = {}
    for label in sorted(set(labels) - {-1}):
        members = [terms for terms, own in zip(found, labels, strict=True) if own == label]
        names[label] = " · ".join(_most_telling(members, everywhere, len(texts)))
    return names


def _most_telling(members: Sequence[set[str]], everywhere: Counter[str], texts: int) -> list[str]:
    here = Counter(term for terms in members for term in terms)
    # A term of one text names that text, not the cluster.
    shared = [
        term for term, count in here.items() if count >= min(2, len(members)) and everywhere[term] < texts
    ]

    def weight(term: str) -> float:
        length = len(term) if term[0] >= "\u4e00" else 2
        return here[term] / len(members) * math.log(texts / everywhere[term]) * math.sqrt(length)

    chosen: list[str] = []
    for term in sorted(shared, key=lambda term: (-weight(term), term)):
        if len(chosen) < TERMS and not any(_overlap(term, other) for other in chosen):
            chosen.append(term)
    return chosen


def _terms(text: str) -> set[str]:
    terms: set[str] = set()
    for run in _RUN.findall(text.lower()):
        if run[0] < "\u4e00":
            terms |= {run} - _EMPTY
            continue
        for length in range(2, 7):
            pieces = (run[start : start + length] for start in range(len(run) - length + 1))
            terms |= {piece for piece in pieces if not _PARTICLES & {piece[0], piece[-1]}}
    return terms


def _overlap(term: str, other: str) -> bool:
    """Pieces of one phrase share two characters in a row; words only count whole."""
    if term[0] < "\u4e00" or other[0] < "\u4e00":
        return term == other
    return any(term[start : start + 2] in other for start in range(len(term) - 1))
