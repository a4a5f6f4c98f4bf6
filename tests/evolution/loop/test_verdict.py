import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest
from statsmodels.stats.contingency_tables import mcnemar

from evolution.loop.flips import CasePair, CaseScores
from evolution.loop.verdict import (
    Policy,
    RunFacts,
    bootstrap_interval,
    compare_facts,
    decide,
    mcnemar_midp,
    sign_flip_p,
)
from evolution.states import Outcome
from tests.benchmarks.verdict_under_the_null import World, count_outcomes

TAU2 = Path(__file__).resolve().parents[4] / "shared" / "data" / "tau2_bench"
RUN = RunFacts("live v1", "dev", "m", "c", "j", 1)
POLICY = Policy(resamples=999)


def side(accuracy: float, effectiveness: float | None = None) -> CaseScores:
    effective = accuracy if effectiveness is None else effectiveness
    return CaseScores(accuracy, effective, passes=int(accuracy == 1 and effective == 1))


def pairs(*runs: tuple[int, CaseScores | None, CaseScores | None], split: str = "dev") -> list[CasePair]:
    """(count, base, candidate) per kind of case."""
    sides = [(base, candidate) for count, base, candidate in runs for _ in range(count)]
    return [CasePair(f"{split}{n}", split, "x", base, candidate) for n, (base, candidate) in enumerate(sides)]


def tau2_pairs(domain: str) -> list[CasePair]:
    if not TAU2.is_dir():
        pytest.skip("the samples are not beside the tree")
    rewards = []
    for run in ("base", "finetuned"):
        record = json.loads((TAU2 / f"{domain}-{run}.json").read_text())
        rewards.append({item["task_id"]: item["reward_info"]["reward"] for item in record["simulations"]})
    base, tuned = rewards
    return [CasePair(key, "dev", domain, side(base[key]), side(tuned[key])) for key in base]


def test_airline_fine_tune_is_inconclusive() -> None:
    figures = decide(tau2_pairs("airline"), RUN, RUN, POLICY)
    assert figures.outcome == Outcome.INCONCLUSIVE
    assert (len(figures.fixed), figures.broken) == (6, ["18", "29", "45"])
    assert figures.metrics["accuracy"].base * 20 == pytest.approx(10)
    assert figures.metrics["accuracy"].candidate * 20 == pytest.approx(13)
    assert figures.cases_needed is not None
    assert 100 < figures.cases_needed < 200


def test_retail_fine_tune_hides_six_regressions_in_an_unchanged_average() -> None:
    figures = decide(tau2_pairs("retail"), RUN, RUN, POLICY)
    assert figures.outcome == Outcome.INCONCLUSIVE
    assert figures.metrics["accuracy"].delta == pytest.approx(0)
    assert sorted(figures.broken, key=int) == ["18", "27", "33", "64", "71", "111"]
    assert len(figures.fixed) == 6


def test_midp_is_the_published_one() -> None:
    # Fagerland, Lydersen, Laake 2013: airway responsiveness before and after transplantation, 1 and 7 discordant.
    assert mcnemar_midp(pairs((1, side(0), side(1)), (7, side(1), side(0)))) == pytest.approx(
        0.0391, abs=1e-4
    )


@pytest.mark.parametrize(("fixed", "broken"), list(product((0, 2, 9), (1, 4, 9))))
def test_midp_agrees_with_statsmodels(fixed: int, broken: int) -> None:
    exact = mcnemar([[0, broken], [fixed, 0]], exact=True).pvalue
    half = 0.5 ** (fixed + broken)
    table_probability = half * _choose(fixed + broken, fixed)
    # Fagerland 2013, supplement: 1 minus half of it where both are equal.
    less = table_probability / 2 if fixed == broken else table_probability
    found = mcnemar_midp(pairs((fixed, side(0), side(1)), (broken, side(1), side(0))))
    assert found == pytest.approx(exact - less)


def test_midp_of_one_flip_each_way() -> None:
    assert mcnemar_midp(pairs((1, side(0), side(1)), (1, side(1), side(0)))) == pytest.approx(0.75)


def _choose(n: int, k: int) -> float:
    return float(np.prod([(n - i) / (i + 1) for i in range(k)])) if k else 1.0


def test_sign_flip_of_five_equal_rises() -> None:
    # Every sign pattern is equally likely: two of 2**5 are as extreme.
    assert sign_flip_p(np.array([0.5] * 5 + [0.0] * 3), Policy()) == pytest.approx(2 / 32)


def test_single_difference_says_nothing() -> None:
    assert sign_flip_p(np.array([0.5, 0, 0]), Policy()) == 1
    assert decide(pairs((1, side(0), side(1)), (3, side(1), side(1))), RUN, RUN, POLICY).cases_needed


def test_sign_flip_is_exact_for_few_and_close_for_many() -> None:
    few = np.array([1, 0.5, 0.5, -0.5, 1, 1, -0.5, 0.5])
    sums = [abs(np.dot(signs, few)) for signs in product((-1, 1), repeat=8)]
    assert sign_flip_p(few, Policy()) == pytest.approx(np.mean(np.array(sums) >= few.sum() - 1e-9))
    many = np.array([0.5] * 40 + [-0.5] * 25)
    # All of one size: the same as the two-sided sign test, 25 or fewer of 65.
    assert sign_flip_p(many, Policy()) == pytest.approx(binomtest(25, 65).pvalue, abs=0.02)


def repeated(base: int, candidate: int, count: int) -> list[tuple[int, CaseScores, CaseScores]]:
    sides = (CaseScores(of / 3, 1.0, passes=of, repeats=3) for of in (base, candidate))
    return [(count, *sides)]  # type: ignore[list-item]


def test_repeats_are_weighed_by_their_mean_and_not_by_flips_to_full_marks() -> None:
    # By flips alone this is 8 broken and none fixed, and by the mean it rises by 7 points.
    cases = pairs(*repeated(3, 2, 8), *repeated(0, 1, 30), *repeated(3, 3, 62))
    figures = decide(cases, RUN, RUN, POLICY)
    assert (figures.outcome, len(figures.broken)) == (Outcome.PROMOTE, 8)
    mirrored = pairs(*repeated(2, 3, 8), *repeated(1, 0, 30), *repeated(3, 3, 62))
    assert decide(mirrored, RUN, RUN, POLICY).outcome == Outcome.REJECT


def test_many_small_rises_do_not_outvote_a_few_large_falls() -> None:
    # Ranks favour the 100 rises by a tenth, the mean falls by 1.8 points: nothing is known.
    cases = pairs((100, side(1, 0.5), side(1, 0.6)), (12, side(1, 1), side(1, 0)))
    figures = decide(cases, RUN, RUN, POLICY)
    assert figures.metrics["effectiveness"].direction(0.05) == 0
    assert figures.outcome == Outcome.INCONCLUSIVE


def test_two_metrics_are_corrected_by_holm() -> None:
    # 7 to 1 alone has 0.0391; the other metric stays as it is, so it counts twice.
    figures = decide(
        pairs((7, side(0, 1), side(1, 1)), (1, side(1), side(0, 1)), (92, side(1), side(1))), RUN, RUN, POLICY
    )
    assert figures.metrics["accuracy"].p == pytest.approx(0.0781, abs=1e-4)
    assert figures.outcome == Outcome.INCONCLUSIVE


def test_versions_that_answer_alike_are_seldom_told_apart() -> None:
    outcomes = count_outcomes(World(60, 0.3), pairs=40, seed=3, policy=Policy(resamples=199))
    assert outcomes["promote"] + outcomes["reject"] <= 4


def test_interval_is_repeatable_and_near_the_normal_one() -> None:
    differences = np.array([1.0] * 30 + [-1.0] * 10 + [0.0] * 160)
    low, high, bound = bootstrap_interval(differences, Policy())
    half = 1.96 * differences.std() / np.sqrt(200)
    assert (low, high) == pytest.approx((0.1 - half, 0.1 + half), abs=0.01)
    assert low < bound < 0.1
    assert bootstrap_interval(differences, Policy()) == (low, high, bound)


def test_clear_gain_is_promoted() -> None:
    figures = decide(
        pairs((12, side(0), side(1)), (1, side(1), side(0)), (103, side(1), side(1))), RUN, RUN, POLICY
    )
    assert figures.outcome == Outcome.PROMOTE
    assert figures.comparable


def test_significant_fall_of_one_metric_rejects() -> None:
    cases = pairs((20, side(0, 1), side(1, 1)), (20, side(1, 1), side(1, 0)), (76, side(1), side(1)))
    assert decide(cases, RUN, RUN, POLICY).outcome == Outcome.REJECT


def test_gain_with_a_loose_other_metric_is_inconclusive() -> None:
    cases = pairs(
        (15, side(0, 1), side(1, 1)),
        (10, side(1, 1), side(1, 0.5)),
        (5, side(1, 0), side(1, 0.5)),
        (10, side(1, 0), side(1, 1)),
        (10, side(1, 1), side(1, 0)),
        (20, side(1), side(1)),
    )
    figures = decide(cases, RUN, RUN, POLICY)
    assert figures.outcome == Outcome.INCONCLUSIVE
    assert [reason.code for reason in figures.reasons][:3] == ["improved", "no_evidence", "outside_margin"]
    assert figures.cases_needed


def test_broken_guard_case_rejects_a_gain() -> None:
    cases = pairs((20, side(0), side(1)), (80, side(1), side(1)))
    guard = pairs((1, side(1), side(0)), (3, side(1), side(1)), split="guard")
    figures = decide(cases + guard, RUN, RUN, POLICY)
    assert figures.outcome == Outcome.REJECT
    assert figures.guard_broken == ["guard0"]
    assert figures.metrics["accuracy"].cases == 100


def test_guard_case_that_failed_before_decides_nothing() -> None:
    guard = pairs((1, side(0), side(0)), split="guard")
    figures = decide(pairs((20, side(0), side(1)), (80, side(1), side(1))) + guard, RUN, RUN, POLICY)
    assert (figures.outcome, figures.guard_failing) == (Outcome.PROMOTE, ["guard0"])


@pytest.mark.parametrize("candidate", [CaseScores(None, None, errors=1), None])
def test_guard_case_without_a_score_holds_a_promotion_back(candidate: CaseScores | None) -> None:
    guard = pairs((1, side(1), candidate), split="guard")
    figures = decide(pairs((20, side(0), side(1)), (79, side(1), side(1))) + guard, RUN, RUN, POLICY)
    assert (figures.outcome, figures.guard_unscored) == (Outcome.INCONCLUSIVE, ["guard0"])
    assert "guard_unscored" in [reason.code for reason in figures.reasons]


def test_unsteady_guard_case_holds_a_promotion_back() -> None:
    guard = [CasePair("g", "guard", "x", CaseScores(1, 1, 2, 0, 2), CaseScores(0.5, 1, 1, 0, 2))]
    figures = decide(pairs((20, side(0), side(1)), (80, side(1), side(1))) + guard, RUN, RUN, POLICY)
    assert (figures.outcome, figures.guard_unsteady) == (Outcome.INCONCLUSIVE, ["g"])


def test_errors_and_missing_cases_are_neither_pass_nor_regression() -> None:
    error = CaseScores(None, None, errors=1)
    figures = decide(pairs((1, side(1), error), (1, side(1), None), (98, side(1), side(1))), RUN, RUN, POLICY)
    assert (figures.errors, figures.missing, figures.broken) == (["dev0"], ["dev1"], [])
    assert figures.metrics["accuracy"].cases == 98


def test_too_little_coverage_is_not_comparable() -> None:
    cases = pairs((30, side(0), side(1)), (5, side(1), CaseScores(None, None, errors=1)))
    figures = decide(cases, RUN, RUN, POLICY)
    assert (figures.outcome, figures.comparable) == (Outcome.INCONCLUSIVE, False)
    assert figures.reasons[0].code == "coverage"


@pytest.mark.parametrize(
    "other",
    [
        RunFacts("live v2", "dev", "m", "c", "j", 1),
        RunFacts("live v1", "dev,guard", "m", "c", "j", 1),
        RunFacts("live v1", "dev", "n", "c", "j", 1),
        RunFacts("live v1", "dev", "m", "d", "j", 1),
        RunFacts("live v1", "dev", "m", "c", "k", 1),
        RunFacts("live v1", "dev", "m", "c", "j", 2),
        RunFacts("live v1", "dev", "m", "c", "j", 1, runner="python3 agent.py"),
        RunFacts("live v1", "dev", "m", "c", "j", 1, faults="timeout:*:0.5"),
        RunFacts("live v1", "dev", "m", "c", "j", 1, user_model="u"),
        RunFacts("live v1", "dev", "m", "c", "j", 1, has_ended=False),
    ],
)
def test_any_other_difference_is_not_comparable(other: RunFacts) -> None:
    assert len(compare_facts(RUN, other)) == 1
    figures = decide(pairs((30, side(0), side(1))), RUN, other, POLICY)
    assert (figures.outcome, figures.comparable, figures.cases_needed) == (Outcome.INCONCLUSIVE, False, None)


def test_same_scores_everywhere_are_no_difference() -> None:
    figures = decide(pairs((30, side(1), side(1)), (10, side(0), side(0))), RUN, RUN, POLICY)
    assert [reason.code for reason in figures.reasons] == ["no_difference"]


def test_no_cases_at_all() -> None:
    figures = decide([], RUN, RUN, POLICY)
    assert [reason.code for reason in figures.reasons] == ["no_cases"]


def test_needed_cases_give_the_promised_power() -> None:
    figures = decide(
        pairs((10, side(0), side(1)), (5, side(1), side(0)), (65, side(1), side(1))), RUN, RUN, Policy()
    )
    assert figures.cases_needed is not None
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(400):
        fixed, broken, _same = rng.multinomial(figures.cases_needed, [10 / 80, 5 / 80, 65 / 80])
        hits += mcnemar_midp(pairs((fixed, side(0), side(1)), (broken, side(1), side(0)))) < 0.025
    assert hits / 400 == pytest.approx(0.8, abs=0.06)


def test_policy_reads_what_a_harness_stores() -> None:
    assert Policy.from_dict({"margin": 0.02, "unknown": 1}) == Policy(margin=0.02)
