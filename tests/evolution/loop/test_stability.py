import itertools
from math import isclose

from evolution.loop.stability import CaseStability, order_by_flakiness, sum_up


def case(key: str, passes: int, trials: int) -> CaseStability:
    return CaseStability(0, key, "any", trials, passes, None, None)


def test_case_is_flaky_when_some_trials_passed_and_others_did_not() -> None:
    assert [case("a", passes, 3).is_flaky for passes in range(4)] == [False, True, True, False]
    assert (case("a", 1, 1).is_flaky, case("a", 0, 0).pass_rate) == (False, None)


def test_flakiness_is_the_share_of_pairs_of_trials_that_differ() -> None:
    for passes, trials in [(0, 2), (1, 2), (2, 5), (5, 5), (4, 8)]:
        outcomes = [True] * passes + [False] * (trials - passes)
        pairs = list(itertools.combinations(outcomes, 2))
        share = sum(one != other for one, other in pairs) / len(pairs)
        assert isclose(case("a", passes, trials).flakiness, share)


def test_pass_hat_is_the_share_of_draws_of_k_trials_that_all_pass() -> None:
    cases = [case("a", 3, 4), case("b", 4, 4), case("c", 1, 4), case("d", 1, 1)]
    counted = sum_up(cases)
    for k in range(1, 5):
        shares = []
        for one in (one for one in cases if one.trials >= k):
            outcomes = [True] * one.passes + [False] * (one.trials - one.passes)
            draws = list(itertools.combinations(outcomes, k))
            shares.append(sum(all(draw) for draw in draws) / len(draws))
        assert isclose(counted.pass_hat[k], sum(shares) / len(shares))
    assert (counted.cases, counted.repeated, counted.flaky, counted.always, counted.never) == (4, 3, 2, 1, 0)


def test_the_flakiest_cases_come_first_and_then_those_that_fail_most() -> None:
    cases = [case("always", 4, 4), case("never", 0, 4), case("often", 3, 4), case("half", 2, 4)]
    assert [one.key for one in order_by_flakiness(cases)] == ["half", "often", "never", "always"]


def test_nothing_measured_is_summed_up_to_nothing() -> None:
    assert sum_up([]).pass_hat == {}
