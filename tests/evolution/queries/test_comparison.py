import pytest

from evolution.loop.evaluation import resume_evaluation
from evolution.queries.comparison import compare
from tests.evolution.measured import (
    DEV,
    make_evaluation,
    make_harness,
    make_measured_step,
    outage,
    run,
    teach,
)

pytestmark = pytest.mark.django_db


def test_broken_cases_come_first_then_fixed_ones() -> None:
    step = make_measured_step(teach(2, 3, 4))
    assert step.base_evaluation is not None
    assert step.candidate_evaluation is not None
    comparison = compare(step.base_evaluation, step.candidate_evaluation)
    assert [row.key for row in comparison.rows[:3]] == ["q1", "q3", "q4"]
    assert comparison.counts == {"broken": 1, "fixed": 2, "still_passing": 1, "still_failing": 36}
    category = comparison.by_category[0]
    assert (category.category, category.cases, category.fixed, category.broken) == ("any", 40, 2, 1)
    assert comparison.obstacles == []
    only = compare(step.base_evaluation, step.candidate_evaluation, flip="broken")
    assert [row.key for row in only.rows] == ["q1"]
    assert only.counts == comparison.counts


def test_obstacles_are_said_in_words() -> None:
    harness = make_harness()
    base, candidate = make_evaluation(harness), make_evaluation(harness, repeats=2)
    run(base)
    run(candidate, answer=outage())
    assert compare(base, candidate).obstacles == [
        "not comparable: repeats differs (1 and 2)",
        "not comparable: there is no case to compare",
    ]
    resume_evaluation(DEV, candidate)
    assert compare(base, candidate).obstacles[1] == "not comparable: an evaluation has not ended"
