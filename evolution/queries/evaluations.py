"""The list of evaluations with what each scored and took, and the dataset versions that one can be made on."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Avg, Count, F, Q, QuerySet

from evolution.models import CaseResult, DatasetVersion, Evaluation, FailureCase, Harness
from evolution.queries.speed import NO_COST, Cost, Latency, case_latencies, measure_costs
from evolution.states import Split

PAGE_SIZE = 50


@dataclass(frozen=True)
class ListedEvaluation:
    """A row of the list; scores are means on the 0-1 scale over `scored` results, guard cases left out of them."""

    evaluation: Evaluation
    done: int = 0
    errors: int = 0
    accuracy: float | None = None
    effectiveness: float | None = None
    latency: Latency | None = None
    cost: Cost = NO_COST

    @property
    def is_covered(self) -> bool:
        """Whether the scores are of everything that was to be measured."""
        return self.done - self.errors >= self.evaluation.total

    @property
    def coverage(self) -> float:
        """The part of all results that are scores, 0-100."""
        return 100 * (self.done - self.errors) / self.evaluation.total if self.evaluation.total else 0.0


def page_evaluations(harness: Harness, page: str | int = 1) -> Page[Evaluation]:
    """One page of the list, newest first; a number out of range gives the nearest."""
    return Paginator(list_evaluations(harness), PAGE_SIZE).get_page(page)


def describe_evaluations(evaluations: Iterable[Evaluation]) -> list[ListedEvaluation]:
    """Scores, latency and cost of each, with a few questions to the database for all."""
    listed = list(evaluations)
    ids = [evaluation.pk for evaluation in listed]
    counts, latencies, costs = _count(ids), case_latencies(ids), measure_costs(ids)
    rows = []
    for each in listed:
        done, errors, accuracy, effectiveness = counts.get(each.pk, (0, 0, None, None))
        cost = costs.get(each.pk, NO_COST)
        rows.append(
            ListedEvaluation(each, done, errors, accuracy, effectiveness, latencies.get(each.pk), cost)
        )
    return rows


def _count(evaluations: Collection[int]) -> dict[int, tuple[Any, ...]]:
    """Evaluation id -> results, errors, accuracy, effectiveness; one without a result is not there."""
    outside_guard = ~Q(case__split=Split.GUARD)
    rows = CaseResult.objects.filter(evaluation__in=evaluations).order_by().values_list("evaluation")
    counted = rows.annotate(
        n=Count("pk"),
        failed=Count("pk", filter=~Q(error_kind="")),
        mean_accuracy=Avg("accuracy", filter=outside_guard),
        mean_effectiveness=Avg("effectiveness", filter=outside_guard),
    )
    return {pk: tuple(figures) for pk, *figures in counted}


def count_scored(evaluations: Collection[int]) -> dict[int, int]:
    """Evaluation id -> results with scores; one without any is not there."""
    scored = CaseResult.objects.filter(evaluation__in=evaluations, error_kind="").order_by()
    return dict(scored.values_list("evaluation").annotate(n=Count("pk")))


def list_evaluations(harness: Harness) -> QuerySet[Evaluation]:
    """Evaluations with their dataset versions, newest first."""
    return (
        Evaluation.objects.filter(harness=harness).select_related("dataset_version__dataset").order_by("-id")
    )


def count_taken(evaluation: Evaluation) -> int:
    """How many failures in the inbox came from an evaluation."""
    return FailureCase.objects.filter(evaluation=evaluation).count()


def list_dataset_versions(harness: Harness) -> list[DatasetVersion]:
    """Dataset versions that the harness can be evaluated on, newest first."""
    versions = DatasetVersion.objects.filter(dataset__harness=harness).select_related("dataset")
    return list(versions.annotate(n=Count("cases")).order_by("dataset__name", F("number").desc()))
