import pytest

from evolution.models import Evaluation
from evolution.queries.stability import list_trials, measure_stability, tabulate_stability
from tests.evolution.measured import make_evaluation, make_harness, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def repeated() -> Evaluation:
    """q1 and q2 pass in each of 3 trials, q3 and q4 in none; then q1 fails once, and q2 has an error."""
    evaluation = make_evaluation(make_harness(), repeats=3)
    run(evaluation)
    evaluation.results.filter(case__key="q1", repeat=1).update(accuracy=0)
    failed = {"accuracy": None, "effectiveness": None, "error_kind": "judge_error"}
    evaluation.results.filter(case__key="q2", repeat=2).update(**failed)
    return evaluation


def test_trials_passes_and_errors_are_counted_by_case(repeated: Evaluation) -> None:
    rows = [(row.key, row.passes, row.trials, row.errors) for row in measure_stability(repeated)]
    assert rows == [("q1", 2, 3, 0), ("q3", 0, 3, 0), ("q4", 0, 3, 0), ("q2", 2, 2, 1)]


def test_means_are_over_the_trials_with_a_score(repeated: Evaluation) -> None:
    means = {row.key: (row.accuracy, row.effectiveness) for row in measure_stability(repeated)}
    assert means["q1"][0] == pytest.approx(2 / 3)
    assert [means[key] for key in ("q2", "q3")] == [(1, 1), (0, 0.5)]


def test_table_has_the_flaky_cases_and_the_sums_of_all(repeated: Evaluation) -> None:
    table = tabulate_stability(repeated)
    assert table is not None
    assert ([row.key for row in table.rows], table.left_out) == (["q1"], 0)
    assert (table.summary.cases, table.summary.flaky, table.summary.always, table.summary.never) == (
        4, 1, 1, 2,
    )  # fmt: skip
    short = tabulate_stability(repeated, most=0)
    assert short is not None
    assert short.left_out == 1


def test_one_trial_says_nothing_of_stability() -> None:
    assert tabulate_stability(make_evaluation(make_harness())) is None


def test_trials_of_a_case_are_listed_by_repeat(repeated: Evaluation) -> None:
    case = repeated.dataset_version.cases.get(key="q2")
    found = [(one.repeat, one.passed, one.error_kind) for one in list_trials(repeated, case.pk)]
    assert found == [(0, True, ""), (1, True, ""), (2, False, "judge_error")]
