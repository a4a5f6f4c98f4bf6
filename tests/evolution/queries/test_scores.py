import numpy as np
import pytest
import statsmodels.api as sm

from evolution.loop.evaluation import create_evaluation
from evolution.models import Evaluation
from evolution.queries.scores import (
    mean_interval,
    score_categories,
    score_overall,
    score_tallies,
)
from evolution.queries.tallies import Sums, Tally, tally_results
from tests.evolution.measured import DEV as ACTOR
from tests.evolution.measured import make_case, make_harness, make_version, run

pytestmark = pytest.mark.django_db


def measure(count: int, repeats: int = 1, guard: int = 0) -> Evaluation:
    """Of cases q1 to qN, of which q1 and q2 are answered right, and of guard cases that are not."""
    cases = [make_case(f"q{n}", category="ab"[n % 2]) for n in range(1, count + 1)]
    cases += [make_case(f"g{n}", split="guard") for n in range(guard)]
    harness = make_harness()
    version = make_version(harness, cases)
    evaluation = create_evaluation(
        ACTOR, harness, "main", version, model="m", judge_model="j", repeats=repeats
    )
    run(evaluation)
    return evaluation


def test_accuracy_has_the_interval_of_wilson() -> None:
    evaluation = measure(4)
    # 81 of 263: 0.2553 to 0.3662 (Newcombe 1998, Statistics in Medicine 17, table I, method 3)
    tally = Tally(results=263, cases=263, scores=263, accuracy=Sums(81, 81, 81))
    found = score_tallies(evaluation, [tally]).accuracy_interval

    assert found is not None
    assert [found.low, found.high] == pytest.approx([25.53, 36.62], abs=0.005)


def test_repeats_of_a_case_are_no_news_of_each_other() -> None:
    random = np.random.default_rng(7)
    groups = np.repeat(np.arange(40), random.integers(1, 6, 40))
    scores = (random.random(len(groups)) < 0.3 + 0.6 * (groups % 2)).astype(float)
    fitted = sm.OLS(scores, np.ones_like(scores)).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "df_correction": True}, use_t=True
    )
    low, high = fitted.conf_int()[0]
    by_case = [(scores[groups == case].sum(), (groups == case).sum()) for case in range(40)]
    sums = Sums(sum(s for s, _ in by_case), sum(s * s for s, _ in by_case), sum(s * n for s, n in by_case))
    tally = Tally(cases=40, scores=len(scores), scores_squared=sum(n * n for _, n in by_case))

    found = mean_interval(sums, tally)

    assert found is not None
    # OLS also corrects for its one parameter: (N - 1) / (N - 1), which is 1 here.
    assert [found.low, found.high] == pytest.approx([100 * low, 100 * high])


@pytest.mark.parametrize("sums", [Sums(), Sums(5, 5, 5)])
def test_no_interval_is_made_up_where_all_cases_score_the_same(sums: Sums) -> None:
    assert mean_interval(sums, Tally(cases=5, scores=5, scores_squared=5)) is None


@pytest.mark.parametrize("repeats", [1, 3])
def test_errors_are_left_out_and_the_coverage_says_so(repeats: int) -> None:
    evaluation = measure(4, repeats, guard=2)
    lost = evaluation.results.filter(case__key="q4")
    lost.update(accuracy=None, effectiveness=None, error_kind="judge_error")

    overall = score_overall(evaluation)
    guard = score_tallies(evaluation, tally_results(evaluation), is_guard=True)

    assert overall.accuracy == pytest.approx(200 / 3)
    assert (overall.cases, overall.failing, overall.errors) == (3, 1, repeats)
    assert (overall.scored, overall.expected, overall.coverage) == (3 * repeats, 4 * repeats, 75)
    assert not overall.is_covered
    assert (guard.cases, guard.failing, guard.is_covered) == (2, 2, True)


def test_categories_are_listed_before_they_have_a_result() -> None:
    evaluation = measure(4)
    evaluation.results.filter(case__category="a").delete()

    first, second = score_categories(evaluation)

    assert (first.category, first.accuracy, first.expected) == ("a", None, 2)
    assert (second.category, second.accuracy, second.scored) == ("b", 50, 2)
