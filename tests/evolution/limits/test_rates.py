import random
from bisect import bisect_right
from collections import Counter
from itertools import accumulate

import pytest

from evolution.limits.rates import Buckets, Draw, Permits, Rates, burst, draw, flow


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def most_in_a_minute(uses: list[tuple[float, float]]) -> float:
    """The most that any 60 s hold of (moment, amount), in order."""
    moments = [moment for moment, _ in uses]
    sums = [0.0, *accumulate(amount for _, amount in uses)]
    return max(sums[bisect_right(moments, moment + 60)] - sums[index] for index, moment in enumerate(moments))


class Minutes:
    """Some processes that call as often as they may, against one pair of buckets, on a clock of their own."""

    def __init__(self, rates: Rates, processes: int, seed: int) -> None:
        self.rates, self.chance, self.clock = rates, random.Random(seed), Clock()  # noqa: S311
        self.processes = [Permits(rates, self.clock) for _ in range(processes)]
        self.left = Buckets(burst(rates.requests), burst(rates.tokens))
        self.drawn_at = self.clock.now
        self.uses: list[tuple[float, float]] = []
        self.spent: list[tuple[float, float]] = []

    def agree(self, permits: Permits, costs: list[int]) -> None:
        asked = permits.ask(costs)
        seconds, self.drawn_at = self.clock.now - self.drawn_at, self.clock.now
        self.left, requests, tokens = draw(self.rates, self.left, seconds, asked)
        permits.accept(requests, tokens, self.clock.now + 1)

    def run(self, seconds: float, cost: int) -> None:
        end = self.clock.now + seconds
        while self.clock.now < end:
            self.clock.now += self.chance.uniform(0, 0.1)
            permits = self.chance.choice(self.processes)
            if self.chance.random() < 0.5:
                self.agree(permits, [cost] * self.chance.randrange(20))
            while permits.allow(cost):
                permits.spend(cost)
                self.uses.append((self.clock.now, 1))
                self.spent.append((self.clock.now, cost))


@pytest.mark.parametrize("per_minute", [1, 2, 30, 60, 61, 62, 63, 100, 600, 6000])
def test_no_minute_has_more_requests_than_the_limit_and_nearly_all_are_used(per_minute: int) -> None:
    minutes = Minutes(Rates(requests=per_minute), processes=4, seed=per_minute)
    minutes.run(200, cost=0)
    assert most_in_a_minute(minutes.uses) <= per_minute
    assert len(minutes.uses) >= 200 / 60 * per_minute * 0.75 - 1


@pytest.mark.parametrize("cost", [10, 900, 5000, 25_000])
def test_no_minute_has_more_tokens_than_the_limit_whatever_a_call_takes(cost: int) -> None:
    minutes = Minutes(Rates(tokens=60_000), processes=3, seed=cost)
    # Each process has to have seen how much a call takes before it draws with foresight.
    for permits in minutes.processes:
        permits.spend(cost)
        permits.spend(-cost)
    minutes.run(300, cost)
    assert most_in_a_minute(minutes.spent) <= 60_000
    assert sum(amount for _, amount in minutes.spent) > 300 / 60 * 60_000 * 0.4


def test_what_flows_in_a_minute_and_a_second_of_permits_is_the_limit() -> None:
    for per_minute in (62, 100, 6000):
        assert burst(per_minute) + 61 * flow(per_minute) == pytest.approx(per_minute)
    assert 5000 + 61 * flow(60_000, largest=5000) == pytest.approx(60_000)


def test_permits_that_nobody_used_go_back_and_are_drawn_by_others() -> None:
    rates, clock = Rates(requests=600), Clock()
    first = Permits(rates, clock)
    left, requests, _ = draw(rates, Buckets(burst(600)), 0, first.ask([0] * 9))
    assert requests == 9
    assert left.requests == pytest.approx(burst(600) - 9)
    first.accept(requests, 0, clock.now + 1)
    clock.now += 2
    assert not first.allow(0)
    left, *_ = draw(rates, left, 0, first.release())
    assert left.requests == pytest.approx(burst(600))


def test_tokens_beyond_the_estimate_are_owed() -> None:
    rates, clock = Rates(tokens=6200), Clock()
    permits = Permits(rates, clock)
    left, _, tokens = draw(rates, Buckets(0, 100), 0, permits.ask([80]))
    permits.accept(0, tokens, clock.now + 1)
    permits.spend(80)
    permits.settle(80 - 280)
    left, _, tokens = draw(rates, left, 0, permits.ask([80]))
    assert (left.tokens, tokens) == (-180, 0)
    # 100 flow in per second, and a call needs what it takes.
    assert draw(rates, left, 2.5, Draw(tokens=80, first=80))[2] == 0
    assert draw(rates, left, 2.7, Draw(tokens=80, first=80))[2] == 80


def test_limit_on_one_of_them_does_not_limit_the_other() -> None:
    assert draw(Rates(tokens=10), Buckets(), 0, Draw(requests=5))[1] == 0
    permits = Permits(Rates(tokens=60), Clock())
    permits.accept(0, 50, 2000)
    assert Counter(permits.allow(cost) for cost in (10, 50, 51)) == {True: 2, False: 1}
