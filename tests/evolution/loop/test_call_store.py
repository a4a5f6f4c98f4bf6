import asyncio
import contextlib
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.db import transaction
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from evolution.limits.tries import announce_retry
from evolution.loop.call_store import NewCall
from evolution.loop.kept_calls import Ledger, Spent, store_spent
from evolution.loop.usage import RoleUse
from evolution.models import Evaluation, EvaluationUsage, ModelCall
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatError, ChatRequest, Usage
from tests.evolution.asking import REQUEST, Endpoint, ask, numbered, store_alone, usage
from tests.evolution.measured import make_evaluation, make_harness
from tests.evolution.racing import run_at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation(make_harness())


def test_every_try_that_failed_is_counted(evaluation: Evaluation) -> None:
    async def fail_twice() -> None:
        for _ in range(2):
            await announce_retry(ChatError("busy", "rate_limit", retryable=True))

    ask(evaluation, Endpoint(fail_twice), REQUEST)
    assert usage(evaluation) == (1, 0, 2)


def test_lookups_of_many_calls_are_one_question(
    evaluation: Evaluation, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ask(evaluation, Endpoint(), *numbered(40))
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("policy", NamedModel(Endpoint(), "m")).model

    async def go() -> None:
        await asyncio.gather(*(wrapped.complete(request) for request in numbered(40)))

    with django_assert_num_queries(1):
        async_to_sync(go)()
    assert ledger.take().usage["policy"].cached == 40


def test_storing_takes_the_same_few_statements_for_any_number_of_calls(
    evaluation: Evaluation, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("policy", NamedModel(Endpoint(), "m")).model

    async def go() -> None:
        await asyncio.gather(*(wrapped.complete(request) for request in numbered(40)))

    async_to_sync(go)()
    with django_assert_num_queries(2):
        store_spent([(ledger, async_to_sync(_take)(ledger))])
    assert ModelCall.objects.count() == 40


async def _take(ledger: Ledger) -> Any:
    return ledger.take()


def test_what_could_not_be_stored_is_stored_later_and_counted_once(evaluation: Evaluation) -> None:
    ledger = Ledger(evaluation)
    model = Endpoint()
    wrapped = ledger.wrap("policy", NamedModel(model, "m")).model

    async def go() -> None:
        await wrapped.complete(REQUEST)
        spent = ledger.take()
        with contextlib.suppress(RuntimeError):
            await sync_to_async(_store_and_fail)(ledger, spent)
        # Not in the database, and not asked for again either.
        await wrapped.complete(REQUEST)
        for one in (spent, ledger.take()):
            await sync_to_async(store_alone)(ledger, one)

    async_to_sync(go)()
    assert (model.asked, usage(evaluation), ModelCall.objects.count()) == (1, (1, 1, 0), 1)


def _store_and_fail(ledger: Ledger, spent: Spent) -> None:
    with transaction.atomic():
        store_spent([(ledger, spent)])
        raise RuntimeError


def test_another_workers_identical_call_is_kept_once_and_counted_for_both(evaluation: Evaluation) -> None:
    ledgers = [Ledger(evaluation), Ledger(evaluation)]
    spent = []
    for ledger in ledgers:
        wrapped = ledger.wrap("policy", NamedModel(Endpoint(), "m")).model

        async def go(ledger: Ledger = ledger, wrapped: Any = wrapped) -> Any:
            await wrapped.complete(REQUEST)
            return ledger.take()

        spent.append(async_to_sync(go)())
    for ledger, one in zip(ledgers, spent, strict=True):
        store_alone(ledger, one)
    assert (ModelCall.objects.count(), usage(evaluation)) == (1, (2, 0, 0))


def test_ledgers_are_stored_in_one_order_whoever_stores_them(
    evaluation: Evaluation, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    other = make_evaluation(evaluation.harness, repeats=2)
    model = Endpoint()
    spent = []
    for one, request in ((other, REQUEST), (evaluation, replace(REQUEST, repeat=5))):
        ledger = Ledger(one)
        wrapped = ledger.wrap("policy", NamedModel(model, "m")).model

        async def go(
            ledger: Ledger = ledger, wrapped: Any = wrapped, request: ChatRequest = request
        ) -> Spent:
            await wrapped.complete(request)
            return ledger.take()

        spent.append((ledger, async_to_sync(go)()))
    with django_assert_num_queries(3) as done:
        store_spent(spent)
    # All calls in one statement, then each evaluation's usage, the older one's first.
    texts = [query["sql"] for query in done.captured_queries]
    assert [text.count("INSERT INTO evolution_modelcall") for text in texts] == [1, 0, 0]
    assert [
        f"VALUES ({one.pk}, " in text for one, text in zip((evaluation, other), texts[1:], strict=True)
    ] == [True] * 2


def test_what_a_database_cannot_keep_is_replaced_in_the_first_reply_too(evaluation: Evaluation) -> None:
    model = Endpoint(content="a\0b\ud800", latency_ms=float("nan"))
    (first,) = ask(evaluation, model, REQUEST)
    (second,) = ask(evaluation, model, REQUEST)
    assert first.content == second.content == "a\ufffdb\ufffd"
    assert (first.latency_ms, second.latency_ms) == (0, 0)


def test_an_answer_that_another_release_wrote_otherwise_is_asked_for_again(evaluation: Evaluation) -> None:
    model = Endpoint()
    ask(evaluation, model, REQUEST)
    ModelCall.objects.update(reply={"text": "?"})
    (reply,) = ask(evaluation, model, REQUEST)
    assert reply.content == "answer 2"


def test_a_use_is_noted_once_a_day(evaluation: Evaluation) -> None:
    model = Endpoint()
    ask(evaluation, model, REQUEST)
    for age, is_noted in ((timedelta(hours=20), False), (timedelta(days=3), True)):
        then = timezone.now() - age
        ModelCall.objects.update(used_at=then)
        ask(evaluation, model, REQUEST)
        assert (ModelCall.objects.get().used_at > then) is is_noted


def test_cost_and_tokens_are_those_of_calls_made(evaluation: Evaluation, settings: Settings) -> None:
    settings.MODEL_PRICES = {"m": {"input": 2, "output": 10, "cached_input": 1}}
    model = Endpoint()
    ask(evaluation, model, *numbered(2))
    ask(evaluation, model, *numbered(2))
    row = EvaluationUsage.objects.get()
    assert (row.prompt_tokens, row.completion_tokens, row.cached_tokens) == (200, 40, 80)
    # Each 60 fresh at 2, 40 cached at 1 and 20 completed at 10 per million.
    assert (row.cost, row.unpriced) == (Decimal("0.00072"), 0)


def test_calls_without_a_known_price_are_counted_as_such(evaluation: Evaluation) -> None:
    ask(evaluation, Endpoint(), REQUEST)
    row = EvaluationUsage.objects.get()
    assert (row.cost, row.unpriced) == (Decimal(0), 1)


@pytest.mark.django_db(transaction=True)
def test_workers_that_store_the_same_calls_at_once_do_not_stop_each_other() -> None:
    harness = make_harness()
    base, candidate = make_evaluation(harness), make_evaluation(harness, repeats=2)
    rounds, keys = 20, [UUID(int=number) for number in range(8)]

    def work(mine: tuple[Evaluation, Evaluation], order: list[UUID]) -> None:
        """Each finds the other's calls under way, and its own in another order."""
        ledgers = [Ledger(evaluation) for evaluation in mine]
        for number in range(rounds):
            fresh = [UUID(int=key.int + 100 * number) for key in order]
            spent = [
                (ledger, Spent({key: _new_call(key) for key in half}, {"judge": RoleUse("j", made=4)}))
                for ledger, half in zip(ledgers, (fresh[:4], fresh[4:]), strict=True)
            ]
            with transaction.atomic():
                store_spent(spent)

    outcomes = run_at_once(
        lambda: work((base, candidate), keys), lambda: work((candidate, base), list(reversed(keys)))
    )
    assert outcomes == [None, None]
    assert ModelCall.objects.count() == rounds * len(keys)
    # Both have made them all.
    assert sum(EvaluationUsage.objects.values_list("made", flat=True)) == 2 * rounds * len(keys)


def _new_call(key: UUID) -> NewCall:
    return NewCall(key, "judge", "j", '{"content": "x"}')


def test_two_halves_of_a_character_are_kept_as_the_character(evaluation: Evaluation) -> None:
    # As results are stored: see harness_repo.runtime.storable.
    (first,) = ask(evaluation, Endpoint(content="\ud83d\ude00"), REQUEST)
    assert first.content == "😀"


def test_a_bill_beyond_all_measure_is_stored_as_far_as_it_can_be(
    evaluation: Evaluation, settings: Settings
) -> None:
    settings.MODEL_PRICES = {"m": {"input": 999_999, "output": 999_999}}
    model = Endpoint(usage=Usage(2**40, 2**40, 2**50))
    ask(evaluation, model, *numbered(9))
    row = EvaluationUsage.objects.get()
    assert (row.cost, row.cached_tokens) == (Decimal(10**10 - 1), row.prompt_tokens)
