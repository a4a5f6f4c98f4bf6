import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evolution.models import Evaluation
from evolution.queries.stability import list_flaky, list_trials, tabulate_stability
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


def fail_once(evaluation: Evaluation, *keys: str) -> None:
    evaluation.results.filter(case__key__in=keys, repeat=0).update(accuracy=0)


def test_the_flakiest_cases_come_first_and_then_those_that_fail_most(repeated: Evaluation) -> None:
    # Of its two trials one passes: as flaky as can be. The others are as flaky as each other; q3 passes once only.
    fail_once(repeated, "q2")
    repeated.results.filter(case__key="q3", repeat=0).update(accuracy=1, effectiveness=1)
    rows = list_flaky(repeated, 9)
    assert [(row.key, row.passes, row.trials, row.errors) for row in rows] == [
        ("q2", 1, 2, 1), ("q3", 1, 3, 0), ("q1", 2, 3, 0),
    ]  # fmt: skip
    assert [row.flakiness for row in rows] == sorted((row.flakiness for row in rows), reverse=True)
    assert [row.key for row in list_flaky(repeated, 1)] == ["q2"]


def test_means_are_over_the_trials_with_a_score(repeated: Evaluation) -> None:
    fail_once(repeated, "q2")
    means = {row.key: (row.accuracy, row.effectiveness) for row in list_flaky(repeated, 9)}
    assert means == {"q1": (pytest.approx(2 / 3), 1), "q2": (0.5, 1)}


def test_only_the_rows_that_are_shown_leave_the_database(repeated: Evaluation) -> None:
    fail_once(repeated, "q2")
    with CaptureQueriesContext(connection) as queries:
        table = tabulate_stability(repeated, most=1)
    assert table is not None
    assert (len(table.rows), table.left_out, len(queries)) == (1, 1, 2)
    assert queries[1]["sql"].rstrip().endswith("LIMIT 1")


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
