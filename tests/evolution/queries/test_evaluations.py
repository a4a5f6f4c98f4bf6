import pytest

from evolution.loop.figures import Figures
from evolution.queries.evaluations import describe_evaluations, page_evaluations
from tests.evolution.measured import make_evaluation, make_harness, run

pytestmark = pytest.mark.django_db


def test_the_list_has_scores_coverage_and_latency_of_each_evaluation() -> None:
    harness = make_harness()
    first, second = make_evaluation(harness), make_evaluation(harness, repeats=2)
    run(first)
    first.results.filter(case__key="q4").update(accuracy=None, effectiveness=None, error_kind="timeout")

    newest, oldest = describe_evaluations(page_evaluations(harness).object_list)

    assert (newest.evaluation, newest.figures, newest.coverage) == (second, Figures(), 0)
    assert (oldest.figures.results, oldest.figures.errors) == (4, 1)
    assert (oldest.coverage, oldest.is_covered) == (75, False)
    assert oldest.figures.accuracy == pytest.approx(2 / 3)
