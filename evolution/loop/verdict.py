"""The verdict over paired scores: promote, reject, or not known yet. Pure: dataclasses in, dataclasses out, no records.

A case counts once: its repeats are averaged first. Cases without a score on both sides are never a pass and never a
regression; guard cases decide by themselves and stand outside the averages. Scores are 0-1, so are the differences.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evolution.loop.flips import CasePair, Flip, flip_accuracy, flip_case, score_difference
from evolution.loop.reasons import Reason
from evolution.states import Outcome

Differences = NDArray[np.float64]
METRICS = ("accuracy", "effectiveness")
# Beyond this, "more cases" is no advice.
MOST_CASES = 100_000


@dataclass(frozen=True)
class Policy:
    """When a candidate is worth promoting.

    A metric rises or falls when two things agree: its two-sided p is below `alpha` after Holm's correction over the two
    metrics, and its whole two-sided interval is on that side of zero. So of two versions that answer alike, at most
    `alpha` are told apart, promotions and rejections together.

    The candidate must raise one metric while the other may not have fallen by `margin` or more: the lower end of its
    one-sided 1-`alpha` interval stays above -`margin`. With about 116 cases of which one in twenty changes sides that
    end is 3.5 points below the difference, so 5 points is the smallest margin that such a set can hold against; a
    large set should be given a smaller one. A fall rejects whatever the margin.

    Guard cases decide beside all this: one that fails every time now rejects; one that fails in some repeats now, or
    has no score on both sides, holds a promotion back.
    """

    alpha: float = 0.05
    # 0-1
    margin: float = 0.05
    # share of the cases that need a score on both sides, 0-1
    coverage: float = 0.98
    # of the number of cases that would settle it
    power: float = 0.8
    # of the bootstrap and the permutation test
    resamples: int = 9999
    seed: int = 20240

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> "Policy":
        """The policy as stored on a harness; what it leaves out has its default."""
        names = {item.name for item in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in names})


@dataclass(frozen=True)
class RunFacts:
    """What must be the same in two evaluations for their difference to be the harness's."""

    dataset_version: str
    splits: str
    # empty for a version that nobody named: its model is a part of what is compared
    model: str
    judge_commit: str
    judge_model: str
    repeats: int
    # the agent with its settings, the faults, and the model that plays the user
    runner: str = "native"
    faults: str = "none"
    user_model: str = ""
    # "live" when tools could reach the world, which is not the same from one hour to the next
    live_tools: str = "fixtures"
    # every (case, repeat) has a result
    has_ended: bool = True


@dataclass(frozen=True)
class MetricFigures:
    """One metric over the scored cases outside the guard; all but `p` and `cases` on the 0-1 scale."""

    base: float
    candidate: float
    delta: float
    # two-sided 1-alpha interval of delta, bootstrapped over cases (BCa)
    low: float
    high: float
    # lower end of the one-sided 1-alpha interval
    bound: float
    # two-sided, after Holm's correction over the metrics; of the mean difference (sign-flip permutation test), of
    # accuracy without repeats the exact McNemar test, mid-p
    p: float
    # standard deviation of the differences
    spread: float
    cases: int

    def direction(self, alpha: float) -> int:
        """1 when the metric rises, -1 when it falls, 0 when that is not known; see Policy."""
        if self.p >= alpha:
            return 0
        return (self.low > 0) - (self.high < 0)


@dataclass(frozen=True)
class VerdictFigures:
    """A verdict and everything it rests on; lists hold case keys."""

    outcome: Outcome
    comparable: bool
    reasons: list[Reason]
    metrics: dict[str, MetricFigures] = field(default_factory=dict)
    fixed: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    guard_broken: list[str] = field(default_factory=list)
    guard_unsteady: list[str] = field(default_factory=list)
    guard_failing: list[str] = field(default_factory=list)
    guard_unscored: list[str] = field(default_factory=list)
    # how many cases would settle an inconclusive verdict, if the differences stay as they are
    cases_needed: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON."""
        return asdict(self)


def decide(pairs: Sequence[CasePair], base: RunFacts, candidate: RunFacts, policy: Policy) -> VerdictFigures:
    """The verdict over all pairs of two evaluations, guard cases among them."""
    flips = {pair.key: flip_case(pair) for pair in pairs}
    measured = [pair for pair in pairs if pair.is_scored and not pair.is_guard]
    metrics = measure_all(measured, policy) if measured else {}
    obstacles = compare_facts(base, candidate) + check_coverage(pairs, policy)
    guards = _guards(pairs)
    outcome, reasons = (Outcome.INCONCLUSIVE, obstacles) if obstacles else _weigh(metrics, guards, policy)
    needed = cases_needed(metrics, policy) if outcome == Outcome.INCONCLUSIVE and not obstacles else None
    if needed:
        reasons = [*reasons, Reason("cases_needed", {"cases": needed})]
    return VerdictFigures(
        outcome,
        not obstacles,
        reasons,
        metrics,
        fixed=_keys(flips, Flip.FIXED),
        broken=_keys(flips, Flip.BROKEN),
        missing=_keys(flips, Flip.MISSING),
        errors=_keys(flips, Flip.ERROR),
        **guards,
        cases_needed=needed,
    )


def compare_facts(base: RunFacts, candidate: RunFacts) -> list[Reason]:
    """Why two evaluations can't be compared; empty when they can."""
    names = [item.name for item in fields(RunFacts) if item.name != "has_ended"]
    # Another agent has no model that could be the same, and an unknown version none that has to be.
    has_model = base.runner == candidate.runner and bool(base.model and candidate.model)
    names = [name for name in names if name != "model" or has_model]
    reasons = [
        Reason("differs", {"what": name, "base": getattr(base, name), "candidate": getattr(candidate, name)})
        for name in names
        if getattr(base, name) != getattr(candidate, name)
    ]
    if not (base.has_ended and candidate.has_ended):
        reasons.append(Reason("unfinished"))
    return reasons


def check_coverage(pairs: Sequence[CasePair], policy: Policy) -> list[Reason]:
    """Whether too many cases lack a score on one side."""
    scored = sum(pair.is_scored for pair in pairs)
    if not scored:
        return [Reason("no_cases")]
    if scored / len(pairs) >= policy.coverage:
        return []
    return [Reason("coverage", {"scored": scored, "total": len(pairs), "minimum": 100 * policy.coverage})]


def measure_all(pairs: Sequence[CasePair], policy: Policy) -> dict[str, MetricFigures]:
    """The figures of every metric over scored pairs, with Holm's correction over the metrics."""
    from statsmodels.stats.multitest import multipletests  # noqa: PLC0415  heavy

    measured = [measure(pairs, name, policy) for name in METRICS]
    corrected = multipletests([figures.p for figures in measured], method="holm")[1]
    adjusted = zip(METRICS, measured, corrected, strict=True)
    return {name: replace(figures, p=float(p)) for name, figures, p in adjusted}


def measure(pairs: Sequence[CasePair], metric: str, policy: Policy) -> MetricFigures:
    """The figures of one metric over scored pairs, its p as if it were the only one."""
    differences = np.array([score_difference(pair, metric) for pair in pairs])
    low, high, bound = bootstrap_interval(differences, policy)
    before = float(np.mean([getattr(pair.base, metric) for pair in pairs]))
    return MetricFigures(
        base=before,
        candidate=before + float(differences.mean()),
        delta=float(differences.mean()),
        low=low,
        high=high,
        bound=bound,
        p=mcnemar_midp(pairs) if _is_single_accuracy(pairs, metric) else sign_flip_p(differences, policy),
        spread=float(differences.std(ddof=1)) if len(pairs) > 1 else 0.0,
        cases=len(pairs),
    )


def _is_single_accuracy(pairs: Iterable[CasePair], metric: str) -> bool:
    """Whether each case's score is 0 or 1, so that flips are all there is to it."""
    sides = (side for pair in pairs for side in (pair.base, pair.candidate))
    return metric == "accuracy" and all(side is not None and side.repeats == 1 for side in sides)


def mcnemar_midp(pairs: Iterable[CasePair]) -> float:
    """Two-sided mid-p of the exact McNemar test on accuracy (Fagerland, Lydersen and Laake 2013).

    The exact conditional p is the binomial test of the discordant cases; mid-p takes half of the observed table's
    probability off each tail, and where there is as much on both sides half of it in all.
    """
    from scipy import stats  # noqa: PLC0415  heavy

    flips = [flip_accuracy(pair) for pair in pairs]
    fixed, broken = flips.count(Flip.FIXED), flips.count(Flip.BROKEN)
    if fixed + broken == 0:
        return 1.0
    exact = stats.binomtest(fixed, fixed + broken, 0.5).pvalue
    observed = stats.binom.pmf(fixed, fixed + broken, 0.5)
    return float(exact - (observed / 2 if fixed == broken else observed))


def sign_flip_p(differences: Differences, policy: Policy) -> float:
    """Two-sided p of the mean difference when each difference may as well have the other sign; 1 when nothing differs.

    Exact up to 13 cases that differ (with the policy's default), else over seeded random sign flips.
    """
    from scipy import stats  # noqa: PLC0415  heavy

    # What does not differ has no sign to flip.
    changed = differences[differences != 0]
    # A single one is as extreme either way.
    if len(changed) < 2:
        return 1.0
    test = stats.permutation_test(
        (changed,),
        np.mean,
        permutation_type="samples",
        n_resamples=policy.resamples,
        batch=max(1, 1_000_000 // len(changed)),
        rng=np.random.default_rng(policy.seed),
    )
    return float(test.pvalue)


def bootstrap_interval(differences: Differences, policy: Policy) -> tuple[float, float, float]:
    """Ends of the two-sided interval of the mean, and the lower end of the one-sided one; seeded, so repeatable."""
    from scipy import stats  # noqa: PLC0415  heavy

    if np.ptp(differences) == 0:
        mean = float(differences[0])
        return mean, mean, mean
    two_sided = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=policy.resamples,
        # a million numbers at a time, whatever the number of cases
        batch=max(1, 1_000_000 // len(differences)),
        confidence_level=1 - policy.alpha,
        method="BCa",
        rng=np.random.default_rng(policy.seed),
    )
    one_sided = stats.bootstrap(
        (differences,),
        np.mean,
        n_resamples=0,
        confidence_level=1 - 2 * policy.alpha,
        method="BCa",
        bootstrap_result=two_sided,
        rng=np.random.default_rng(policy.seed),
    )
    interval = two_sided.confidence_interval
    return float(interval.low), float(interval.high), float(one_sided.confidence_interval.low)


def cases_needed(metrics: Mapping[str, MetricFigures], policy: Policy) -> int | None:
    """How many cases would settle it with the policy's power, if differences and spread stay as they are.

    Paired t-test power on the differences per case. Where one metric rises already, it is what the other one
    needs to hold its margin; else what the larger difference needs to show by Holm's first step, or one of the
    margin's size where there is none. Twice as many as there are, where these should have been enough.
    """
    risen = [name for name, figures in metrics.items() if figures.direction(policy.alpha) > 0]
    others = [figures for name, figures in metrics.items() if name not in risen]
    if risen:
        needed = max(
            _sizes(((item.delta + policy.margin, item.spread, "larger") for item in others), policy),
            default=None,
        )
    else:
        first = replace(policy, alpha=policy.alpha / len(METRICS))
        shown = _sizes(((abs(item.delta), item.spread, "two-sided") for item in others), first)
        hidden = _sizes(((policy.margin, item.spread, "two-sided") for item in others), first)
        needed = min(shown, default=max(hidden, default=None))
    if needed is None:
        return None
    measured = max(figures.cases for figures in metrics.values())
    return needed if needed > measured else 2 * measured


def _sizes(questions: Iterable[tuple[float, float, str]], policy: Policy) -> list[int]:
    """The sample sizes for (effect, spread, alternative), without those that have no answer."""
    found = (_sample_size(effect, spread, policy, alternative) for effect, spread, alternative in questions)
    return [size for size in found if size is not None]


def _sample_size(effect: float, spread: float, policy: Policy, alternative: str) -> int | None:
    from statsmodels.stats.power import TTestPower  # noqa: PLC0415  heavy

    if effect <= 1e-9 or spread <= 0:
        return None
    # The solver has no root below two cases or so, where the effect is many times the spread.
    size = TTestPower().solve_power(
        effect_size=min(effect / spread, 1.5), alpha=policy.alpha, power=policy.power, alternative=alternative
    )
    needed = math.ceil(float(np.ravel(size)[0]))
    return needed if needed <= MOST_CASES else None


def _weigh(
    metrics: Mapping[str, MetricFigures], guards: Mapping[str, list[str]], policy: Policy
) -> tuple[Outcome, list[Reason]]:
    ways = {name: figures.direction(policy.alpha) for name, figures in metrics.items()}
    risen = [name for name, way in ways.items() if way > 0]
    fallen = [name for name, way in ways.items() if way < 0]
    loose = [name for name, way in ways.items() if way == 0 and metrics[name].bound <= -policy.margin]
    said = {code: Reason(code, {"cases": keys}) for code, keys in guards.items() if keys}
    known = said.pop("guard_failing", None)
    reasons = list(said.values())
    reasons += [_metric_reason(name, figures, policy) for name, figures in metrics.items()]
    reasons += [
        Reason(
            "outside_margin",
            {"metric": name, "margin": 100 * policy.margin, "bound": 100 * metrics[name].bound},
        )
        for name in loose
    ]
    reasons += [known] if known else []
    if fallen or guards["guard_broken"]:
        return Outcome.REJECT, reasons
    if risen and not loose and not guards["guard_unsteady"] and not guards["guard_unscored"]:
        return Outcome.PROMOTE, reasons
    if not guards["guard_unscored"] and not any(item.spread or item.delta for item in metrics.values()):
        return Outcome.INCONCLUSIVE, [Reason("no_difference")]
    return Outcome.INCONCLUSIVE, reasons


def _metric_reason(name: str, figures: MetricFigures, policy: Policy) -> Reason:
    values = {
        "metric": name,
        "delta": 100 * figures.delta,
        "drop": -100 * figures.delta,
        "low": 100 * figures.low,
        "high": 100 * figures.high,
        "p": figures.p,
    }
    codes = {1: "improved", -1: "fell", 0: "no_evidence"}
    return Reason(codes[figures.direction(policy.alpha)], values)


def _guards(pairs: Iterable[CasePair]) -> dict[str, list[str]]:
    """Guard cases by what is wrong with them now."""
    found: dict[str, list[str]] = {
        "guard_broken": [],
        "guard_unscored": [],
        "guard_unsteady": [],
        "guard_failing": [],
    }
    for pair in pairs:
        code = _guard_code(pair) if pair.is_guard else None
        if code:
            found[code].append(pair.key)
    return found


def _guard_code(pair: CasePair) -> str | None:
    """A guard case that failed every time before is not the candidate's doing; one without a score is not known."""
    if pair.base is None or pair.candidate is None or not pair.is_scored:
        return "guard_unscored"
    if pair.candidate.is_passing:
        return None
    if pair.base.passes == 0:
        return "guard_failing"
    if pair.candidate.passes == 0:
        return "guard_broken"
    return "guard_unsteady" if pair.base.is_passing else None


def _keys(flips: Mapping[str, Flip], wanted: Flip) -> list[str]:
    return sorted(key for key, flip in flips.items() if flip == wanted)
