"""What an evaluation scored, overall and by category: means with their intervals, and what they rest on."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from evolution.models import Evaluation
from evolution.queries.tallies import Sums, Tally, count_cases, join_tallies, tally_results
from evolution.states import Split

ALPHA = 0.05


@dataclass(frozen=True)
class Interval:
    """A 95 % confidence interval in percent."""

    low: float
    high: float


@dataclass(frozen=True)
class ScoreRow:
    """Mean scores in percent (None without any score) over the results of a category, or over all of them.

    Every result weighs the same. `cases` counts the dataset cases with at least one score, `failing` those of them
    below full marks, `errors` the results without a score, and `expected` those that there are to be.
    """

    category: str
    cases: int
    accuracy: float | None
    effectiveness: float | None
    errors: int
    failing: int
    results: int = 0
    expected: int = 0
    # None with fewer than two cases, and where all cases score the same
    accuracy_interval: Interval | None = None
    effectiveness_interval: Interval | None = None

    @property
    def scored(self) -> int:
        """Results with scores."""
        return self.results - self.errors

    @property
    def coverage(self) -> float:
        """How much of what is to be measured the means rest on, 0-100; never rounded up to all of it."""
        return 100 * min(self.scored / self.expected, 1.0) if self.expected else 0.0

    @property
    def is_covered(self) -> bool:
        """Whether the means rest on everything that was to be measured."""
        return self.scored >= self.expected


def score_overall(evaluation: Evaluation) -> ScoreRow:
    """Scores over all results outside the guard."""
    return score_tallies(evaluation, tally_results(evaluation))


def score_tallies(evaluation: Evaluation, tallies: Iterable[Tally], *, is_guard: bool = False) -> ScoreRow:
    """The same of tallies that are there already; guard cases decide by themselves and are in no other mean."""
    counts = count_cases(evaluation.dataset_version_id)
    wanted = {Split.GUARD.value} if is_guard else set(evaluation.splits) - {Split.GUARD.value}
    cases = sum(n for (split, _), n in counts.items() if split in wanted and split in evaluation.splits)
    chosen = [tally for tally in tallies if tally.is_guard == is_guard]
    return _score("", chosen, cases * evaluation.repeats, evaluation.repeats)


def score_categories(evaluation: Evaluation) -> list[ScoreRow]:
    """Scores by category, in alphabetical order, guard cases left out; categories without a result are listed too."""
    outside = [tally for tally in tally_results(evaluation, by_category=True) if not tally.is_guard]
    expected: dict[str, int] = {tally.category: 0 for tally in outside}
    for (split, category), n in count_cases(evaluation.dataset_version_id).items():
        if split in evaluation.splits and split != Split.GUARD:
            expected[category] = expected.get(category, 0) + n * evaluation.repeats
    return [
        _score(name, [tally for tally in outside if tally.category == name], n, evaluation.repeats)
        for name, n in sorted(expected.items())
    ]


def _score(category: str, tallies: list[Tally], expected: int, repeats: int) -> ScoreRow:
    all_of_them = join_tallies(tallies)
    accuracy, effectiveness = all_of_them.accuracy, all_of_them.effectiveness
    return ScoreRow(
        category=category,
        cases=all_of_them.cases,
        accuracy=_mean(accuracy, all_of_them),
        effectiveness=_mean(effectiveness, all_of_them),
        errors=sum(tally.results for tally in tallies if tally.error_kind),
        failing=all_of_them.failing,
        results=all_of_them.results,
        expected=expected,
        accuracy_interval=_wilson(accuracy, all_of_them)
        if repeats == 1
        else mean_interval(accuracy, all_of_them),
        effectiveness_interval=mean_interval(effectiveness, all_of_them),
    )


def _mean(sums: Sums, tally: Tally) -> float | None:
    return 100 * sums.total / tally.scores if tally.scores else None


def _wilson(sums: Sums, tally: Tally) -> Interval | None:
    """Wilson's interval of a proportion, where every case has one score."""
    from statsmodels.stats.proportion import proportion_confint  # noqa: PLC0415  heavy

    if tally.cases < 2:
        return None
    low, high = proportion_confint(sums.total, tally.cases, alpha=ALPHA, method="wilson")
    return Interval(100 * float(low), 100 * float(high))


def mean_interval(sums: Sums, tally: Tally) -> Interval | None:
    """Student's interval of the mean over all scores, whose repeats within a case are no news of each other.

    The variance is the cluster-robust one with a case as cluster (CR1; Cameron and Miller 2015, "A practitioner's
    guide to cluster-robust inference"), from sums that the database made, as the scores themselves stay there. With
    the same number of scores in every case it is that of the case means.
    """
    from scipy import stats  # noqa: PLC0415  heavy

    cases, scores = tally.cases, tally.scores
    if cases < 2:
        return None
    mean = sums.total / scores
    residual = sums.squares - 2 * mean * sums.by_count + mean * mean * tally.scores_squared
    error = math.sqrt(max(residual, 0.0) * cases / (cases - 1)) / scores
    if error < 1e-9:
        return None
    reach = float(stats.t.ppf(1 - ALPHA / 2, cases - 1)) * error
    return Interval(100 * max(mean - reach, 0.0), 100 * min(mean + reach, 1.0))
