"""Inside an evaluation: how much the trials of one case differ. Pure; what is made of it is shown, and decides nothing.

An error is no trial: it is neither a pass nor a failure.
"""

from collections.abc import Collection
from dataclasses import dataclass
from math import comb


@dataclass(frozen=True)
class CaseStability:
    """One case over its trials; a trial passes with accuracy 1 and effectiveness 1."""

    case_id: int
    key: str
    category: str
    # trials with a score, and those of them that passed
    trials: int
    passes: int
    # means, 0-1; None without a trial
    accuracy: float | None
    effectiveness: float | None
    # trials without a score
    errors: int = 0

    @property
    def pass_rate(self) -> float | None:
        """0-1; None without a trial."""
        return self.passes / self.trials if self.trials else None

    @property
    def is_flaky(self) -> bool:
        """Whether some trials passed and others did not."""
        return 0 < self.passes < self.trials

    @property
    def flakiness(self) -> float:
        """The chance that two trials drawn from these one after the other differ: 0 for a stable case, 1 at most."""
        pairs = comb(self.trials, 2)
        return self.passes * (self.trials - self.passes) / pairs if pairs else 0.0


@dataclass(frozen=True)
class Stability:
    """All cases of an evaluation together."""

    # those with a trial, and among those with two trials or more
    cases: int
    repeated: int
    flaky: int
    always: int
    never: int
    # k -> chance that k trials of a case all pass, mean over the cases that have k trials
    pass_hat: dict[int, float]


def sum_up(cases: Collection[CaseStability]) -> Stability:
    """How many cases are stable, and pass^k for every k that a case has trials for.

    pass^k is the unbiased estimate C(passes, k) / C(trials, k) of tau-bench (arXiv:2406.12045, section 3).
    """
    tried = [case for case in cases if case.trials]
    repeated = [case for case in tried if case.trials > 1]
    return Stability(
        cases=len(tried),
        repeated=len(repeated),
        flaky=sum(case.is_flaky for case in repeated),
        always=sum(case.passes == case.trials for case in repeated),
        never=sum(case.passes == 0 for case in repeated),
        pass_hat={
            k: _pass_hat(tried, k) for k in range(1, 1 + max((case.trials for case in tried), default=0))
        },
    )


def _pass_hat(cases: Collection[CaseStability], k: int) -> float:
    chances = [comb(case.passes, k) / comb(case.trials, k) for case in cases if case.trials >= k]
    return sum(chances) / len(chances)


def order_by_flakiness(cases: Collection[CaseStability]) -> list[CaseStability]:
    """The flakiest first, then those that fail most."""
    return sorted(cases, key=lambda case: (-case.flakiness, case.pass_rate or 0.0, case.key))
