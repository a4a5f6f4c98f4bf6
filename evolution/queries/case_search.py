"""Searching the inbox: the newest cases whose text has all terms, at a like price for frequent, rare and absent ones.

First the newest cases that pass the filter are looked through, which is enough for frequent terms; then the index is
asked, one block of ids after another from the newest on. Terms too short for the index are looked for in case after
case, for a limited time; the answer says how far that went.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

import numpy as np
from django.db.models import F, Q, QuerySet
from numpy.typing import NDArray

from evolution.loop.search_text import BLOCK, query_pieces, salt
from evolution.models import CaseText, FailureCase
from evolution.queries.case_terms import containing

# Cases that are looked through first, and at most at once.
FIRST_LOOK = 500
LONGEST_LOOK = 5_000
# Of the first look; as many or more, and looking on is cheaper than the index.
FREQUENT = 8
# Seconds after which a search stops where it is.
PATIENCE = 3.0
# Distinct pieces of a search that the index is asked for; the rest is left to looking at the text.
MOST_PIECES = 16
# Blocks that one question is about.
MOST_BLOCKS = 16


@dataclass
class Found:
    """The ids of a search, in the order it was made in."""

    ids: list[int] = field(default_factory=list)
    # whether no more cases would be found
    is_exhausted: bool = False
    # the id up to which everything was searched, when time ran out
    stopped_at: int | None = None


def search_cases(
    cases: QuerySet[FailureCase],
    terms: list[str],
    limit: int,
    *,
    upwards: bool = False,
    patience: float = PATIENCE,
) -> Found:
    """The first `limit` of the cases, by falling id (rising when `upwards`), whose text has all the terms."""
    return _Search(cases, terms, limit, upwards=upwards, patience=patience).run()


class _Search:
    """One search on its way through the ids."""

    def __init__(
        self, cases: QuerySet[FailureCase], terms: list[str], limit: int, *, upwards: bool, patience: float
    ) -> None:
        self.cases = cases.order_by("id" if upwards else "-id")
        self.terms, self.limit, self.upwards = terms, limit, upwards
        self.until = time.monotonic() + patience
        self.found = Found()
        # everything up to here has been searched
        self.seen: int | None = None
        self.pieces = _rarest(terms)

    def run(self) -> Found:
        """Look through the first cases, then ask the index, or look on where it can't tell."""
        hits = self._look(FIRST_LOOK)
        looked = FIRST_LOOK
        while self._wants_more() and (len(self.pieces) == 0 or hits * FIRST_LOOK >= FREQUENT * looked):
            size = self._next_look(hits, looked)
            looked += size
            hits += self._look(size)
        if self._wants_more():
            self._ask_index()
        self.found.is_exhausted |= self.found.stopped_at is None and len(self.found.ids) < self.limit
        del self.found.ids[self.limit :]
        return self.found

    def _wants_more(self) -> bool:
        if self.found.is_exhausted or len(self.found.ids) >= self.limit:
            return False
        if time.monotonic() > self.until:
            self.found.stopped_at = self.seen
        return self.found.stopped_at is None

    def _next_look(self, hits: int, looked: int) -> int:
        """As many cases as it should take to find what is missing, going by what was found so far."""
        missing = self.limit - len(self.found.ids)
        return max(FIRST_LOOK, min(LONGEST_LOOK, round(1.3 * missing * looked / max(hits, 1))))

    def _rest(self) -> QuerySet[FailureCase]:
        if self.seen is None:
            return self.cases
        return self.cases.filter(**{"pk__gt" if self.upwards else "pk__lt": self.seen})

    def _look(self, size: int) -> int:
        """Look through the next cases; returns in how many of them the terms are."""
        ids = list(self._rest().values_list("pk", flat=True)[:size])
        matching = CaseText.objects.filter(containing(self.terms, "text"), pk__in=ids)
        hits = sorted(matching.values_list("pk", flat=True), reverse=not self.upwards)
        self.found.ids += hits
        self.found.is_exhausted = len(ids) < size
        if ids:
            self.seen = ids[-1]
        return len(hits)

    def _ask_index(self) -> None:
        last = self.cases.reverse().values_list("pk", flat=True).first()
        if self.seen is None or last is None:
            return
        for blocks in _block_runs(self.seen // BLOCK, last // BLOCK):
            if not self._wants_more():
                return
            entries = [Q(grams__contains=salt(self.pieces, block).tolist()) for block in blocks]
            hits = set()
            # First those that wait for the index: one that gets into it meanwhile is found by either.
            if CaseText.objects.filter(grams=None).exists():
                hits |= set(self._matching(blocks, Q(grams=None)))
            hits |= set(self._matching(blocks, reduce(or_, entries)))
            self.found.ids += sorted(hits, reverse=not self.upwards)
            # Those beyond the limit are cut off; whoever goes on does so from the last one within.
            self.seen = (max(blocks) + 1) * BLOCK - 1 if self.upwards else min(blocks) * BLOCK

    def _matching(self, blocks: Sequence[int], chosen: Q) -> list[int]:
        """The next cases of some blocks that pass the filter and have the terms, of texts that are `chosen`."""
        span = Q(pk__gte=min(blocks) * BLOCK, pk__lt=(max(blocks) + 1) * BLOCK)
        texts = CaseText.objects.filter(chosen, span, containing(self.terms, "text"), case__in=self._rest())
        # Not the bare id: the planner would walk along it, and look at every text on the way.
        order = F("pk") + 0
        ids = texts.order_by(order.asc() if self.upwards else order.desc()).values_list("pk", flat=True)
        return list(ids[: self.limit - len(self.found.ids)])


def _rarest(terms: list[str]) -> NDArray[np.uint64]:
    """The pieces to ask the index for, taken evenly from all terms; none when all are too short for it."""
    pieces = np.unique(np.concatenate([query_pieces(term) for term in terms]))
    return pieces[:: -(-len(pieces) // MOST_PIECES) or 1]


def _block_runs(first: int, last: int) -> Iterator[range]:
    """Blocks from one to the other, in runs that get longer: what is rare is found in few questions."""
    step = 1 if last >= first else -1
    at, size = first, 1
    while (last - at) * step >= 0:
        end = at + step * min(size, (last - at) * step + 1)
        yield range(at, end, step)
        size = min(2 * size if at != first else 1, MOST_BLOCKS)
        at = end
