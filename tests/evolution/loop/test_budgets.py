import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.utils import timezone
from pytest_django import Settings

from evolution.errors import LoopError
from evolution.limits.tries import announce_retry
from evolution.loop.budgets import check_budget, life_signs, take_permits
from evolution.loop.kept_calls import Ledger, Spent, store_spent
from evolution.models import Evaluation
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, Usage
from tests.evolution.measured import make_evaluation, make_harness
from tests.evolution.racing import run_at_once

pytestmark = pytest.mark.django_db

REQUEST = ChatRequest("m", [{"role": "user", "content": "?"}])


class Endpoint:
    """Uses 100 tokens for each call, and takes a moment."""

    def __init__(self, before: Callable[[], Awaitable[None]] | None = None) -> None:
        self.before = before
        self.asked = 0

    async def complete(self, _request: ChatRequest) -> ChatReply:
        self.asked += 1
        await (self.before or _pause)()
        return ChatReply("a", usage=Usage(80, 20))


def _store(evaluation: Evaluation, ledger: Ledger, spent: Spent) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(**life_signs(timezone.now()))
    store_spent([(ledger, spent)])


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


def reserved(evaluation: Evaluation) -> int:
    return Evaluation.objects.get(pk=evaluation.pk).calls_reserved


@pytest.mark.parametrize("at_once", [1, 4])
def test_no_call_is_made_beyond_a_budget_of_calls(at_once: int) -> None:
    model = Endpoint()
    evaluation = make(calls=6)
    ledger = ask(evaluation, model, 12, at_once=at_once)
    assert (model.asked, ledger.stopped_by, reserved(evaluation)) == (6, "calls", 6)


def test_tries_that_failed_are_calls_of_the_budget_too() -> None:
    async def fail_thrice() -> None:
        for _ in range(3):
            await announce_retry(ChatError("busy", "rate_limit", retryable=True))

    evaluation = make(calls=6)
    ledger = ask(evaluation, Endpoint(fail_thrice), 3)
    use = evaluation.usage.get()
    # Four tries answered the first; the second had the last two, and was not allowed a third.
    assert (use.made, use.failed, ledger.stopped_by) == (1, 3 + 2, "calls")


def test_calls_taken_in_advance_and_not_made_are_given_back() -> None:
    evaluation = make(calls=1000)
    ask(evaluation, Endpoint(), 3)
    assert reserved(evaluation) == 3


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


def test_pauses_are_no_running_time() -> None:
    evaluation = make_evaluation(make_harness())
    start = timezone.now()
    for seconds in (0, 10, 15, 5000, 5010):
        own = Evaluation.objects.filter(pk=evaluation.pk)
        own.update(**life_signs(start + timedelta(seconds=seconds)))
    evaluation.refresh_from_db()
    # 10 + 5, then a breath of a dead worker, then 10.
    assert evaluation.running_seconds == pytest.approx(10 + 5 + 30 + 10)
    assert evaluation.heartbeat_at == start + timedelta(seconds=5010)


def test_a_budget_is_stored_without_the_parts_that_limit_nothing(settings: Settings) -> None:
    settings.MODEL_PRICES = {"m": {"input": 1, "output": 1}}
    budget = {"calls": 5, "tokens": None, "money": Decimal("1.5"), "seconds": 2.5}
    assert check_budget(budget, ["m", "rehearsal-judge", ""]) == {"calls": 5, "money": 1.5, "seconds": 2.5}
    assert check_budget(None, ["m"]) == {}


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"calls": 0}, "above 0, and calls of this one is 0"),
        ({"calls": True}, "calls of this one is True"),
        ({"calls": 2.5}, "a budget of calls is a whole number"),
        ({"seconds": float("nan")}, "seconds of this one is nan"),
        ({"tokens": "many"}, "tokens of this one is many"),
        ({"euros": 5}, "no part euros"),
        ({"money": 5}, "the price of m, n is unknown"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(budget: dict[str, Any], said: str) -> None:
    with pytest.raises(LoopError, match=said):
        check_budget(budget, ["m", "n", "rehearsal-judge", "m"])


@pytest.mark.django_db(transaction=True)
def test_workers_at_once_never_take_more_calls_than_the_budget_has() -> None:
    evaluation = make(calls=50)

    def take() -> list[int]:
        return [take_permits(evaluation.pk, 50, 3) for _ in range(10)]

    taken = run_at_once(*[take] * 4)
    assert sum(sum(one) for one in taken if isinstance(one, list)) == reserved(evaluation) == 50
