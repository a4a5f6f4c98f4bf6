"""Evaluations: how far they are, what they scored overall and by category, and what failed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Avg, Count, F, Q, QuerySet, Sum

from evolution.models import DatasetVersion, Evaluation, FailureCase, Harness
from evolution.queries.results import FAILING
from evolution.states import EvaluationState, Split

RUNNING = (EvaluationState.QUEUED, EvaluationState.RUNNING)
# Guard cases decide by themselves; means leave them out, here as in the verdict.
OUTSIDE_GUARD = ~Q(results__case__split=Split.GUARD)


@dataclass(frozen=True)
class Progress:
    """How many (case, repeat) pairs of an evaluation are done, out of how many, and how many of them are errors."""

    done: int
    total: int
    errors: int
    is_running: bool

    @property
    def is_complete(self) -> bool:
        """Whether the scores are of everything that was to be measured."""
        return not self.is_running and self.done >= self.total

    @property
    def percent(self) -> int:
        """0-100."""
        return round(100 * self.done / self.total) if self.total else 0


@dataclass(frozen=True)
class ScoreRow:
    """Mean scores in percent (None without any score) over the results of a category, or over all of them.

    `cases` counts the dataset cases with at least one score, `errors` the results without.
    """

    category: str
    cases: int
    accuracy: float | None
    effectiveness: float | None
    errors: int
    failing: int


def list_evaluations(harness: Harness) -> QuerySet[Evaluation]:
    """Evaluations with `done`, `errors` and mean scores (0-1), newest first."""
    evaluations = Evaluation.objects.filter(harness=harness).select_related("dataset_version__dataset")
    return evaluations.annotate(
        done=Count("results"),
        errors=Count("results", filter=~Q(results__error_kind="")),
        accuracy=Avg("results__accuracy", filter=OUTSIDE_GUARD),
        effectiveness=Avg("results__effectiveness", filter=OUTSIDE_GUARD),
    ).order_by("-id")


def measure_progress(evaluation: Evaluation) -> Progress:
    """How far an evaluation is, from the results that are stored."""
    counts = evaluation.results.aggregate(done=Count("id"), errors=Count("id", filter=~Q(error_kind="")))
    return Progress(
        done=counts["done"],
        total=evaluation.total,
        errors=counts["errors"],
        is_running=evaluation.state in RUNNING,
    )


def score_categories(evaluation: Evaluation) -> list[ScoreRow]:
    """Scores by category, in alphabetical order, guard cases left out. Every result weighs the same."""
    outside = evaluation.results.exclude(case__split=Split.GUARD)
    rows = outside.values("case__category").annotate(**_AGGREGATES).order_by("case__category")
    return [_score_row(row["case__category"], row) for row in rows]


def score_overall(evaluation: Evaluation) -> ScoreRow:
    """Scores over all results outside the guard."""
    return _score_row("", evaluation.results.exclude(case__split=Split.GUARD).aggregate(**_AGGREGATES))


def score_guard(evaluation: Evaluation) -> ScoreRow:
    """Scores of the guard cases alone."""
    return _score_row("", evaluation.results.filter(case__split=Split.GUARD).aggregate(**_AGGREGATES))


_AGGREGATES = {
    "cases": Count("case", distinct=True, filter=Q(error_kind="")),
    "mean_accuracy": Avg("accuracy"),
    "mean_effectiveness": Avg("effectiveness"),
    "errors": Count("id", filter=~Q(error_kind="")),
    "failing": Count("case", distinct=True, filter=FAILING),
}


def _score_row(category: str, row: Mapping[str, Any]) -> ScoreRow:
    return ScoreRow(
        category=category,
        cases=int(row["cases"] or 0),
        accuracy=_percent(row["mean_accuracy"]),
        effectiveness=_percent(row["mean_effectiveness"]),
        errors=int(row["errors"] or 0),
        failing=int(row["failing"] or 0),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


@dataclass(frozen=True)
class Cost:
    """What an evaluation took: tokens in all, and the mean latency of the agent in milliseconds."""

    prompt_tokens: int
    completion_tokens: int
    latency_ms: float | None


def measure_cost(evaluation: Evaluation) -> Cost:
    """Tokens and latency over the stored results."""
    sums = evaluation.results.aggregate(
        sent=Sum("prompt_tokens"), received=Sum("completion_tokens"), ms=Avg("latency_ms")
    )
    return Cost(sums["sent"] or 0, sums["received"] or 0, sums["ms"])


def count_taken(evaluation: Evaluation) -> int:
    """How many failures in the inbox came from an evaluation."""
    return FailureCase.objects.filter(evaluation=evaluation).count()


def list_dataset_versions(harness: Harness) -> list[DatasetVersion]:
    """Dataset versions that the harness can be evaluated on, newest first."""
    versions = DatasetVersion.objects.filter(dataset__harness=harness).select_related("dataset")
    return list(versions.annotate(n=Count("cases")).order_by("dataset__name", F("number").desc()))
