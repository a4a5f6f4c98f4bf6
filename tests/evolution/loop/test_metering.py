import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone
from pytest_django import Settings

from evolution.limits.tries import announce_request, announce_retry
from evolution.loop.budgets import life_signs
from evolution.loop.kept_calls import Ledger, Spent, store_spent
from evolution.models import Evaluation
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, Usage
from tests.evolution.measured import make_evaluation, make_harness

pytestmark = pytest.mark.django_db

REQUEST = ChatRequest("m", [{"role": "user", "content": "?"}])


class Endpoint:
    """Uses 100 tokens for each call, and takes a moment."""

    def __init__(self, before: Callable[[], Awaitable[object]] | None = None) -> None:
        self.before = before
        self.asked = 0

    async def complete(self, _request: ChatRequest) -> ChatReply:
        self.asked += 1
        await (self.before or _pause)()
        return ChatReply("a", usage=Usage(80, 20))


def _store(evaluation: Evaluation, ledger: Ledger, spent: Spent) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(**life_signs(timezone.now()))
    store_spent([(ledger, spent)])


async def until(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        # What it waits for is no event of ours.
        while not is_so():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def _pause() -> None:
    await asyncio.sleep(0.002)


def make(**budget: Any) -> Evaluation:
    evaluation = make_evaluation(make_harness())
    Evaluation.objects.filter(pk=evaluation.pk).update(budget=budget)
    evaluation.refresh_from_db()
    return evaluation


def ask(evaluation: Evaluation, model: Any, calls: int, *, at_once: int = 1, first: int = 0) -> Ledger:
    """Ask so many different questions, and store after each handful as a worker does; returns the ledger."""
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("policy", NamedModel(model, "m")).model

    async def go() -> None:
        for start in range(first, first + calls, at_once):
            requests = [replace(REQUEST, repeat=number) for number in range(start, start + at_once)]
            done = await asyncio.gather(*map(wrapped.complete, requests), return_exceptions=True)
            refused = [one for one in done if not isinstance(one, ChatReply)]
            assert all(isinstance(one, ChatError) and one.kind == "budget" for one in refused)
            await sync_to_async(_store)(evaluation, ledger, ledger.take())
        await ledger.close()

    async_to_sync(go)()
    return ledger


def counted(evaluation: Evaluation) -> int:
    """All calls that count: those whose end is stored, and those that somebody holds."""
    stored = sum(use.made + use.failed for use in evaluation.usage.all())
    return stored + sum(hold.calls for hold in evaluation.holds.all())


@pytest.mark.parametrize("at_once", [1, 4])
def test_no_call_is_made_beyond_a_budget_of_calls(at_once: int) -> None:
    model = Endpoint()
    evaluation = make(calls=6)
    ledger = ask(evaluation, model, 12, at_once=at_once)
    assert (model.asked, ledger.stopped_by, counted(evaluation)) == (6, "calls", 6)


def test_tries_that_failed_are_calls_of_the_budget_too() -> None:
    async def fail_thrice() -> None:
        for _ in range(3):
            await announce_retry(ChatError("busy", "rate_limit", retryable=True))

    evaluation = make(calls=6)
    ledger = ask(evaluation, Endpoint(fail_thrice), 3)
    use = evaluation.usage.get()
    # Four tries answered the first; the second had the last two, and was not allowed a third.
    assert (use.made, use.failed, ledger.stopped_by) == (1, 3 + 2, "calls")


def test_nothing_is_held_once_all_is_stored() -> None:
    evaluation = make(calls=1000, tokens=10**6)
    ask(evaluation, Endpoint(), 3)
    assert (evaluation.holds.count(), counted(evaluation)) == (0, 3)


def test_two_workers_share_a_budget_of_calls() -> None:
    evaluation = make(calls=6)
    models = [Endpoint(), Endpoint()]
    ask(evaluation, models[0], 4)
    ask(evaluation, models[1], 4, first=100)
    assert [model.asked for model in models] == [4, 2]


def test_kept_answers_cost_nothing_of_a_budget() -> None:
    model = Endpoint()
    evaluation = make(calls=3)
    ask(evaluation, model, 3)
    ledger = ask(evaluation, model, 3)
    assert (model.asked, ledger.stopped_by) == (3, "")


def test_a_budget_of_tokens_ends_with_the_call_that_uses_it_up() -> None:
    model = Endpoint()
    ledger = ask(make(tokens=450), model, 10)
    assert (model.asked, ledger.stopped_by) == (5, "tokens")


def test_calls_under_way_count_at_their_mean_against_a_budget_of_tokens() -> None:
    model = Endpoint()
    evaluation = make(tokens=1000)
    ask(evaluation, model, 4)
    # 400 are used: six more may be under way, whatever asks at once.
    ledger = ask(evaluation, model, 20, at_once=20, first=100)
    assert (model.asked, ledger.stopped_by) == (10, "tokens")


def test_a_budget_of_money_counts_what_all_workers_spent(settings: Settings) -> None:
    settings.MODEL_PRICES = {"m": {"input": 100, "output": 100}}
    evaluation = make(money=0.05)
    model = Endpoint()
    # A hundredth each.
    ask(evaluation, model, 3)
    ledger = ask(evaluation, model, 10, first=100)
    assert (model.asked, ledger.stopped_by) == (5, "money")


def test_a_price_that_vanished_ends_a_budget_of_money(settings: Settings) -> None:
    settings.MODEL_PRICES = {}
    model = Endpoint()
    ledger = ask(make(money=5), model, 3)
    assert (model.asked, ledger.stopped_by) == (1, "money")


def test_a_budget_of_seconds_counts_the_time_worked() -> None:
    evaluation = make(seconds=60)
    Evaluation.objects.filter(pk=evaluation.pk).update(running_seconds=59.9, heartbeat_at=timezone.now())
    model = Endpoint(lambda: asyncio.sleep(0.15))
    ledger = ask(evaluation, model, 3)
    assert (model.asked, ledger.stopped_by) == (1, "seconds")


class Crowded(Endpoint):
    """Knows how many calls it had under way at most."""

    def __init__(self) -> None:
        super().__init__()
        self.under_way = self.most = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            return await super().complete(request)
        finally:
            self.under_way -= 1


def test_the_first_calls_count_by_the_length_of_their_prompts() -> None:
    model = Crowded()
    ledger = ask(make(tokens=450), model, 20, at_once=20)
    # Some 215 tokens are expected of each: three may use it up. They don't, and those who waited go on.
    assert (model.most, model.asked, ledger.stopped_by) == (3, 5, "tokens")


def test_the_longest_answer_that_a_call_allows_is_expected_of_it() -> None:
    model = Crowded()
    evaluation = make(tokens=2000)
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("policy", NamedModel(model, "m")).model
    requests = [replace(REQUEST, repeat=number, parameters={"max_tokens": 1000}) for number in range(6)]

    @async_to_sync
    async def go() -> None:
        await asyncio.gather(*map(wrapped.complete, requests))

    go()
    assert (model.most, model.asked) == (2, 6)


def test_the_first_calls_count_at_what_such_calls_took_before(settings: Settings) -> None:
    settings.MODEL_PRICES = {"m": {"input": 100, "output": 100}}
    before = make()
    ask(before, Endpoint(), 2)
    evaluation = make_evaluation(before.harness, is_fresh=True, repeats=2)
    Evaluation.objects.filter(pk=evaluation.pk).update(budget={"money": 0.1})
    evaluation.refresh_from_db()
    model = Crowded()
    ledger = ask(evaluation, model, 30, at_once=30)
    # A hundredth each.
    assert (model.most, model.asked, ledger.stopped_by) == (10, 10, "money")


@pytest.mark.parametrize("budget", [{"tokens": 450}, {"calls": 5}])
def test_first_calls_of_two_workers_are_held_to_one_budget(budget: dict[str, int]) -> None:
    evaluation = make(**budget)
    model = Endpoint()
    ledgers = [Ledger(evaluation), Ledger(evaluation)]

    @async_to_sync
    async def go() -> None:
        wrapped = [ledger.wrap("policy", NamedModel(model, "m")).model for ledger in ledgers]
        requests = [replace(REQUEST, repeat=number) for number in range(20)]
        working = [wrapped[request.repeat % 2].complete(request) for request in requests]
        done = asyncio.gather(*working, return_exceptions=True)
        while not done.done():
            for ledger in ledgers:
                await sync_to_async(_store)(evaluation, ledger, ledger.take())
            await asyncio.sleep(0.01)

    go()
    assert model.asked == 5


def die_with_calls_under_way(evaluation: Evaluation, calls: int) -> None:
    """A worker is killed after it has begun calls."""
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("policy", NamedModel(Endpoint(asyncio.Event().wait), "m")).model

    @async_to_sync
    async def go() -> None:
        requests = [replace(REQUEST, repeat=1000 + number) for number in range(calls)]
        tasks = [asyncio.ensure_future(wrapped.complete(request)) for request in requests]
        await until(lambda: ledger.in_flight == calls)
        for task in tasks:
            task.cancel()

    go()
    evaluation.holds.update(lease_until=timezone.now())


def test_calls_under_way_in_a_killed_worker_have_failed_and_none_else_is_lost() -> None:
    evaluation = make(calls=10)
    die_with_calls_under_way(evaluation, 4)
    model = Endpoint()
    ledger = ask(evaluation, model, 20, at_once=3)
    use = evaluation.usage.get()
    assert (model.asked, ledger.stopped_by) == (6, "calls")
    assert (use.made, use.failed, use.model) == (6, 4, "m")


def test_nobody_waits_for_tokens_of_a_killed_worker() -> None:
    evaluation = make(tokens=450)
    die_with_calls_under_way(evaluation, 1)
    model = Endpoint()
    ledger = ask(evaluation, model, 20, at_once=20)
    # Its call may have used the 215 that were expected of it.
    assert (model.asked, ledger.stopped_by) == (3, "tokens")


def test_one_that_is_cancelled_while_it_waits_takes_nothing() -> None:
    evaluation = make(tokens=200)
    ledger, free = Ledger(evaluation), asyncio.Event()
    model = Endpoint(free.wait)
    wrapped = ledger.wrap("policy", NamedModel(model, "m")).model

    @async_to_sync
    async def go() -> None:
        first, second = (
            asyncio.ensure_future(wrapped.complete(replace(REQUEST, repeat=number))) for number in range(2)
        )
        await until(lambda: ledger.in_flight > 0)
        await asyncio.sleep(0.05)
        second.cancel()
        free.set()
        await first
        await wrapped.complete(replace(REQUEST, repeat=2))

    go()
    assert model.asked == 2


@pytest.mark.parametrize("budget", [{"tokens": 450}, {"calls": 5}, {"seconds": 60}])
def test_a_deleted_evaluation_makes_no_further_call_and_stops_no_other(budget: dict[str, int]) -> None:
    evaluation = make(**budget)
    ledger, model = Ledger(evaluation), Endpoint()
    wrapped = ledger.wrap("policy", NamedModel(model, "m")).model

    @async_to_sync
    async def go() -> None:
        await wrapped.complete(REQUEST)
        await sync_to_async(Evaluation.objects.filter(pk=evaluation.pk).delete)()
        await sync_to_async(ledger.refresh)()
        with pytest.raises(ChatError, match="the evaluation is gone"):
            await wrapped.complete(replace(REQUEST, repeat=1))
        await ledger.close()

    go()
    assert model.asked == 1


class Queueing(Endpoint):
    """Takes one call at a time, and says when it sends one."""

    announces_requests = True

    def __init__(self, before: Callable[[], Awaitable[object]]) -> None:
        super().__init__(before)
        self._place = asyncio.Semaphore(1)

    async def complete(self, request: ChatRequest) -> ChatReply:
        async with self._place:
            await announce_request()
            return await super().complete(request)


def test_calls_in_line_for_a_place_are_not_paid_for() -> None:
    evaluation = make(calls=10)
    ledger, free = Ledger(evaluation), asyncio.Event()
    model = Queueing(free.wait)
    wrapped = ledger.wrap("policy", NamedModel(model, "m")).model

    @async_to_sync
    async def go() -> None:
        requests = [replace(REQUEST, repeat=number) for number in range(4)]
        tasks = [asyncio.ensure_future(wrapped.complete(request)) for request in requests]
        await until(lambda: model.asked == 1)
        assert (ledger.in_flight, await sync_to_async(counted)(evaluation)) == (4, 1)
        tasks[3].cancel()
        free.set()
        await asyncio.gather(*tasks[:3])
        await sync_to_async(_store)(evaluation, ledger, ledger.take())
        await ledger.close()

    go()
    use = evaluation.usage.get()
    assert (use.made, use.failed, counted(evaluation)) == (3, 0, 3)
