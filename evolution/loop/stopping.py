"""Inside promotion: when to stop evolving, and with which version. Pure.

Progress is not monotone: what is left in the end is a sparse long tail, and one more rule is likelier to break
something than to gain. So two steps in a row without a promotion end it, and so does having nothing left to try.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evolution.loop.reasons import Reason

PATIENCE = 2
BASELINE = "baseline"
PROMOTED = "promoted"


@dataclass(frozen=True)
class Measured:
    """One version that was measured; `decision` is baseline, or the state of its step."""

    commit: str
    # 0-100
    accuracy: float
    effectiveness: float
    decision: str

    @property
    def is_kept(self) -> bool:
        """Whether it became live."""
        return self.decision in {BASELINE, PROMOTED}


@dataclass(frozen=True)
class Advice:
    """Whether to stop, the version that should stay, and why."""

    stop: bool
    selected: str
    reasons: list[Reason]


def early_stop(series: Sequence[Measured], clusters_left: int, patience: int = PATIENCE) -> Advice:
    """Advise on a series in the order it was measured, its first entry the baseline.

    `clusters_left`: open clusters large enough for a rule of their own that nobody tried to mend. Selected is the
    last version kept that no other kept version beats on one metric and equals on the other. Raises ValueError for
    an empty series.
    """
    kept = [version for version in series if version.is_kept]
    if not kept:
        raise ValueError("a series starts with its baseline")
    undominated = [version for version in kept if not any(dominates(other, version) for other in kept)]
    selected = undominated[-1]
    idle = _idle_steps(series)
    reasons = []
    if idle >= patience:
        reasons.append(Reason("patience", {"steps": idle}))
    if clusters_left == 0:
        reasons.append(Reason("nothing_left"))
    stop = bool(reasons)
    if not stop:
        reasons.append(Reason("still_to_try", {"clusters": clusters_left}))
    reasons.append(Reason("best_version" if selected == kept[-1] else "dominated"))
    return Advice(stop, selected.commit, reasons)


def dominates(one: Measured, other: Measured) -> bool:
    """Whether `one` is at least as good on both metrics and better on one."""
    ahead = one.accuracy >= other.accuracy and one.effectiveness >= other.effectiveness
    return ahead and (one.accuracy, one.effectiveness) != (other.accuracy, other.effectiveness)


def _idle_steps(series: Sequence[Measured]) -> int:
    """How many of the last entries were not kept."""
    idle = 0
    for version in reversed(series):
        if version.is_kept:
            break
        idle += 1
    return idle
