"""The list of evaluations with what each scored and took, and the dataset versions that one can be made on."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.db.models import Count, F, QuerySet

from evolution.loop.figures import Figures, figures_of
from evolution.models import DatasetVersion, Evaluation, FailureCase, Harness

PAGE_SIZE = 50


@dataclass(frozen=True)
class ListedEvaluation:
    """A row of the list."""

    evaluation: Evaluation
    figures: Figures

    @property
    def is_covered(self) -> bool:
        """Whether the scores are of everything that was to be measured."""
        return self.figures.scored >= self.evaluation.total

    @property
    def coverage(self) -> float:
        """The part of all results that are scores, 0-100."""
        return 100 * self.figures.scored / self.evaluation.total if self.evaluation.total else 0.0


def page_evaluations(harness: Harness, page: str | int = 1) -> Page[Evaluation]:
    """One page of the list, newest first; a number out of range gives the nearest."""
    return Paginator(list_evaluations(harness), PAGE_SIZE).get_page(page)


def describe_evaluations(evaluations: Iterable[Evaluation]) -> list[ListedEvaluation]:
    """Scores, latency and cost of each, with a few questions to the database for all."""
    listed = list(evaluations)
    figures = figures_of(listed)
    return [ListedEvaluation(each, figures[each.pk]) for each in listed]


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


def find_newer_dataset(evaluation: Evaluation) -> DatasetVersion | None:
    """The newest version of the dataset that an evaluation ran over, when there is a newer one than its own."""
    version = evaluation.dataset_version
    newer = DatasetVersion.objects.filter(dataset=version.dataset_id, number__gt=version.number)
    return newer.select_related("dataset").order_by("-number").first()
