"""Inside an evaluation: how much the trials of one case differ. Pure; what is made of it is shown, and decides nothing.

An error is no trial: it is neither a pass nor a failure.
"""

from collections.abc import Mapping
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


def sum_up(cases: Mapping[tuple[int, int], int]) -> Stability:
    """How many cases are stable, and pass^k for every k that a case has trials for, from (trials, passes) -> cases.

    pass^k is the unbiased estimate C(passes, k) / C(trials, k) of tau-bench (arXiv:2406.12045, section 3).
    """
    tried = {counts: n for counts, n in cases.items() if counts[0]}
    repeated = {counts: n for counts, n in tried.items() if counts[0] > 1}
    always = sum(n for (trials, passes), n in repeated.items() if passes == trials)
    never = sum(n for (_trials, passes), n in repeated.items() if passes == 0)
    return Stability(
        cases=sum(tried.values()),
        repeated=sum(repeated.values()),
        flaky=sum(repeated.values()) - always - never,
        always=always,
        never=never,
        pass_hat={
            k: _pass_hat(tried, k) for k in range(1, 1 + max((trials for trials, _ in tried), default=0))
        },
    )


def _pass_hat(cases: Mapping[tuple[int, int], int], k: int) -> float:
    long_enough = {counts: n for counts, n in cases.items() if counts[0] >= k}
    passed = sum(n * comb(passes, k) / comb(trials, k) for (trials, passes), n in long_enough.items())
    return passed / sum(long_enough.values())
