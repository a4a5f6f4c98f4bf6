import math

import pytest

from evolution.adapters.results.numbers import NoScore, grade, read_cost, read_count
from evolution.adapters.results.wanted import Wanted


@pytest.mark.parametrize(
    ("score", "threshold", "expected"),
    [
        (1, 1, (1, 1)),
        (0, 1, (0, 0)),
        # tau2-bench takes a reward that is off by less than a millionth.
        (1 - 1e-7, 1, (1, 1)),
        (0.7, 1, (0, 0.7)),
        (0.7, 0.7, (1, 1)),
        (True, 1, (1, 1)),
        (False, 0.5, (0, 0)),
    ],
)
def test_a_score_passes_from_its_threshold_on(
    score: float, threshold: float, expected: tuple[float, float]
) -> None:
    graded = grade(score, Wanted(threshold=threshold))
    assert (graded["accuracy"], graded["effectiveness"]) == expected


@pytest.mark.parametrize("score", [None, "good", math.nan, math.inf, -math.inf, 7, -1, 10**400, [1], {}])
def test_what_is_no_score_on_the_scale_is_none(score: object) -> None:
    with pytest.raises(NoScore):
        grade(score, Wanted())


def test_full_marks_say_what_the_scale_is() -> None:
    assert grade(7, Wanted(full_marks=10, threshold=0.8)) == {"accuracy": 0, "effectiveness": 0.7}


def test_a_cost_of_nothing_for_tokens_is_not_known() -> None:
    assert read_cost(0, 100) is None
    assert read_cost(0, 0) == 0
    assert read_cost(0.25, 100) == 0.25
    assert read_cost(math.nan) is None


def test_counts_fit_their_column() -> None:
    assert [read_count(value) for value in (3, -3, 10**30, math.nan, "3", True)] == [3, 0, 2**31 - 1, 0, 0, 0]
