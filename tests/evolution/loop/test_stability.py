import itertools
from collections import Counter
from math import isclose

from evolution.loop.stability import CaseStability, sum_up


def case(key: str, passes: int, trials: int) -> CaseStability:
    return CaseStability(0, key, "any", trials, passes, None, None)


def test_without_a_trial_there_is_no_pass_rate() -> None:
    assert (case("a", 1, 4).pass_rate, case("a", 0, 0).pass_rate) == (0.25, None)


def test_flakiness_is_the_share_of_pairs_of_trials_that_differ() -> None:
    for passes, trials in [(0, 2), (1, 2), (2, 5), (5, 5), (4, 8)]:
        outcomes = [True] * passes + [False] * (trials - passes)
        pairs = list(itertools.combinations(outcomes, 2))
        share = sum(one != other for one, other in pairs) / len(pairs)
        assert isclose(case("a", passes, trials).flakiness, share)


def test_pass_hat_is_the_share_of_draws_of_k_trials_that_all_pass() -> None:
    cases = [(3, 4), (4, 4), (4, 4), (1, 4), (1, 1)]
    counted = sum_up(Counter((trials, passes) for passes, trials in cases))
    for k in range(1, 5):
        shares = []
        for passes, trials in (one for one in cases if one[1] >= k):
            outcomes = [True] * passes + [False] * (trials - passes)
            draws = list(itertools.combinations(outcomes, k))
            shares.append(sum(all(draw) for draw in draws) / len(draws))
        assert isclose(counted.pass_hat[k], sum(shares) / len(shares))
    assert (counted.cases, counted.repeated, counted.flaky, counted.always, counted.never) == (5, 4, 2, 2, 0)


def test_a_case_that_never_passes_or_has_but_errors_is_not_flaky() -> None:
    counted = sum_up({(3, 0): 2, (0, 0): 7, (1, 0): 1})
    assert (counted.cases, counted.repeated, counted.flaky, counted.never) == (3, 2, 0, 2)
    assert counted.pass_hat == {1: 0, 2: 0, 3: 0}


def test_nothing_measured_is_summed_up_to_nothing() -> None:
    assert sum_up({}).pass_hat == {}
