"""A step's figures on the half of dev that its drafters may have been shown, and on the half that they never saw."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from evolution.loop.flips import CasePair, Flip, flip_case, score_difference
from evolution.loop.regressions import load_pairs
from evolution.loop.verdict import METRICS
from evolution.models import Evaluation, Step
from evolution.states import Split


@dataclass(frozen=True)
class HalfMetric:
    """A metric over the scored cases of a half, on the 0-1 scale."""

    name: str
    base: float
    candidate: float
    delta: float
    # 95 % interval of delta (Student's, over the cases); None with fewer than two cases, or where none differs
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Half:
    """One half: `held_in` or `held_out`."""

    name: str
    # dev cases of it that have a score on both sides
    cases: int
    fixed: int
    broken: int
    metrics: list[HalfMetric] = field(default_factory=list)

    def delta(self, metric: str) -> float | None:
        """The difference in a metric; None without a case."""
        return next((each.delta for each in self.metrics if each.name == metric), None)


@dataclass(frozen=True)
class Halves:
    """Both halves of a measured step."""

    held_in: Half
    held_out: Half
    # metrics that rose where the drafters looked, and not where they did not
    only_held_in: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON, scores on the 0-100 scale."""
        found: dict[str, Any] = {half.name: _to_dict(half) for half in (self.held_in, self.held_out)}
        return {**found, "only_held_in": self.only_held_in}


def read_halves(step: Step) -> Halves | None:
    """The halves of a step; None before both sides are measured, or for a step of which no division is known."""
    if step.base_evaluation is None or step.candidate_evaluation is None or not step.held_in:
        return None
    return compare_halves(step.base_evaluation, step.candidate_evaluation, step.held_in)


def find_division(base: Evaluation, candidate: Evaluation) -> list[str]:
    """The held-in keys of the newest step that was made of these two versions; empty when there is none."""
    steps = Step.objects.filter(
        harness=candidate.harness_id, base_commit=base.commit, candidate_commit=candidate.commit
    )
    found = steps.order_by("-number").values_list("held_in", flat=True).first()
    return list(found or [])


def compare_halves(base: Evaluation, candidate: Evaluation, held_in: Collection[str]) -> Halves | None:
    """Two evaluations by halves; None when no dev case has a score in both."""
    pairs = [pair for pair in load_pairs(base, candidate) if pair.split == Split.DEV and pair.is_scored]
    return divide(pairs, held_in) if pairs else None


def divide(pairs: Sequence[CasePair], held_in: Collection[str]) -> Halves:
    """The figures of scored pairs by halves."""
    known = set(held_in)
    shown = _add_up("held_in", [pair for pair in pairs if pair.key in known])
    unseen = _add_up("held_out", [pair for pair in pairs if pair.key not in known])
    suspect = [name for name in METRICS if _rose(shown, name) and unseen.cases and not _rose(unseen, name)]
    return Halves(shown, unseen, suspect)


def _rose(half: Half, metric: str) -> bool:
    return (half.delta(metric) or 0) > 1e-9


def _add_up(name: str, pairs: Sequence[CasePair]) -> Half:
    flips = [flip_case(pair) for pair in pairs]
    metrics = [_measure(metric, pairs) for metric in METRICS] if pairs else []
    return Half(name, len(pairs), flips.count(Flip.FIXED), flips.count(Flip.BROKEN), metrics)


def _measure(metric: str, pairs: Sequence[CasePair]) -> HalfMetric:
    before = sum(float(getattr(pair.base, metric)) for pair in pairs) / len(pairs)
    differences = [score_difference(pair, metric) for pair in pairs]
    delta = sum(differences) / len(pairs)
    low, high = _interval(differences)
    return HalfMetric(metric, before, before + delta, delta, low, high)


def _interval(differences: Sequence[float]) -> tuple[float | None, float | None]:
    from scipy import stats  # noqa: PLC0415  heavy

    if len(set(differences)) < 2:
        return None, None
    interval = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    low, high = float(interval.low), float(interval.high)
    return (low, high) if math.isfinite(low) and math.isfinite(high) else (None, None)


def _to_dict(half: Half) -> dict[str, Any]:
    metrics = {
        each.name: {
            "base": round(100 * each.base, 2),
            "candidate": round(100 * each.candidate, 2),
            "delta": round(100 * each.delta, 2),
        }
        for each in half.metrics
    }
    return {"cases": half.cases, "fixed": half.fixed, "broken": half.broken, **metrics}
