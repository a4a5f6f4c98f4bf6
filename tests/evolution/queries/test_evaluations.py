import pytest

from evolution.queries.evaluations import describe_evaluations, page_evaluations
from tests.evolution.measured import make_evaluation, make_harness, run

pytestmark = pytest.mark.django_db


def test_the_list_has_scores_coverage_and_latency_of_each_evaluation() -> None:
    harness = make_harness()
    first, second = make_evaluation(harness), make_evaluation(harness, repeats=2)
    run(first)
    first.results.filter(case__key="q4").update(accuracy=None, effectiveness=None, error_kind="timeout")

    newest, oldest = describe_evaluations(page_evaluations(harness).object_list)

    assert (newest.evaluation, newest.done, newest.accuracy, newest.latency) == (second, 0, None, None)
    assert (oldest.done, oldest.errors, oldest.coverage, oldest.is_covered) == (4, 1, 75, False)
    assert oldest.accuracy == pytest.approx(2 / 3)
