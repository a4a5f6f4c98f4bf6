"""What became of each case between two evaluations. Pure; the verdict and the comparison page stand on it."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from evolution.states import Split


class Flip(StrEnum):
    """What became of a case; the accuracy flip and the flip of the whole case share these names."""

    FIXED = "fixed"
    BROKEN = "broken"
    STILL_PASSING = "still_passing"
    STILL_FAILING = "still_failing"
    MISSING = "missing"
    ERROR = "error"


class Change(StrEnum):
    """What became of a case's effectiveness."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class CaseScores:
    """One case in one evaluation, its repeats averaged."""

    # 0-1; None when not every repeat has a score
    accuracy: float | None
    effectiveness: float | None
    # repeats with full marks on both metrics, and repeats with an error
    passes: int = 0
    errors: int = 0
    repeats: int = 1

    @property
    def is_scored(self) -> bool:
        """Whether every repeat has a score."""
        return self.accuracy is not None and self.effectiveness is not None

    @property
    def is_passing(self) -> bool:
        """Full marks on both metrics in every repeat."""
        return self.is_scored and self.passes == self.repeats


@dataclass(frozen=True)
class CasePair:
    """One case in two evaluations; a side is None where the evaluation has no result for it."""

    key: str
    split: str
    category: str
    base: CaseScores | None
    candidate: CaseScores | None

    @property
    def is_guard(self) -> bool:
        """Whether the case must never fail."""
        return self.split == Split.GUARD

    @property
    def is_scored(self) -> bool:
        """Whether both sides have a score."""
        return bool(self.base and self.candidate and self.base.is_scored and self.candidate.is_scored)


def flip_case(pair: CasePair) -> Flip:
    """The flip of the whole case: it passes with accuracy 1 and effectiveness 1. What `fixed` and `broken` count."""
    return _flip(pair, lambda scores: scores.is_passing)


def flip_accuracy(pair: CasePair) -> Flip:
    """The flip of accuracy alone: it passes with accuracy 1 in every repeat."""
    return _flip(pair, lambda scores: scores.accuracy == 1)


def change_effectiveness(pair: CasePair) -> Change:
    """Whether the case's effectiveness rose or fell."""
    if not pair.is_scored:
        return Change.UNKNOWN
    difference = score_difference(pair, "effectiveness")
    if difference == 0:
        return Change.SAME
    return Change.BETTER if difference > 0 else Change.WORSE


def _flip(pair: CasePair, passes: Callable[[CaseScores], bool]) -> Flip:
    if pair.base is None or pair.candidate is None:
        return Flip.MISSING
    if not pair.is_scored:
        return Flip.ERROR
    before, after = passes(pair.base), passes(pair.candidate)
    if before:
        return Flip.STILL_PASSING if after else Flip.BROKEN
    return Flip.FIXED if after else Flip.STILL_FAILING


def score_difference(pair: CasePair, metric: str) -> float:
    """Candidate minus base of a scored pair, -1 to 1."""
    return float(getattr(pair.candidate, metric) - getattr(pair.base, metric))
