import asyncio
import contextlib
from collections.abc import Awaitable, Callable
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
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, ToolCall, Usage
from tests.evolution.measured import make_evaluation, make_harness
from tests.evolution.racing import run_at_once

pytestmark = pytest.mark.django_db

REQUEST = ChatRequest("m", [{"role": "user", "content": "3号链接多少钱？"}])


class Endpoint:
    """Answers with a number of its own for each call; `before` may wait or raise."""

    def __init__(self, before: Callable[[], Awaitable[None]] | None = None, **fields: Any) -> None:
        self.before = before
        self.fields = fields
        self.asked = 0

    async def complete(self, _request: ChatRequest) -> ChatReply:
        self.asked += 1
        number = self.asked
        if self.before is not None:
            await self.before()
        return ChatReply(
            **{"content": f"answer {number}", "usage": Usage(100, 20, 40), "latency_ms": 7.5, **self.fields}
        )


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation(make_harness())


def store_alone(ledger: Ledger, spent: Spent) -> None:
    with transaction.atomic():
        store_spent([(ledger, spent)])


def work(ledger: Ledger, *asking: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Ask all at once in an event loop and store what came of it; returns replies and errors."""

    async def go() -> list[Any]:
        replies = await asyncio.gather(*(ask() for ask in asking), return_exceptions=True)
        spent = ledger.take()
        await sync_to_async(store_alone)(ledger, spent)
        await ledger.close()
        return replies

    return async_to_sync(go)()


def ask(evaluation: Evaluation, model: Any, *requests: ChatRequest, role: str = "policy") -> list[Any]:
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap(role, NamedModel(model, "m")).model
    return work(ledger, *(lambda request=request: wrapped.complete(request) for request in requests))


def numbered(count: int) -> list[ChatRequest]:
    return [replace(REQUEST, repeat=number) for number in range(count)]


def usage(evaluation: Evaluation) -> tuple[int, int, int]:
    row = EvaluationUsage.objects.get(evaluation=evaluation)
    return row.made, row.cached, row.failed


def test_an_identical_call_is_answered_by_the_kept_reply(evaluation: Evaluation) -> None:
    calls = [ToolCall("c1", "get_price", '{"link": 3}')]
    model = Endpoint(
        content=None, tool_calls=calls, finish_reason="tool_calls", reasoning="hm", fingerprint="fp"
    )
    (first,) = ask(evaluation, model, REQUEST)
    (second,) = ask(evaluation, model, REQUEST)
    assert model.asked == 1
    assert second == replace(first, is_cached=True)
    assert (first.is_cached, first.latency_ms, first.tool_calls) == (False, 7.5, calls)
    assert usage(evaluation) == (1, 1, 0)


@pytest.mark.parametrize(
    "other",
    [
        replace(REQUEST, model="n"),
        replace(REQUEST, messages=[{"role": "user", "content": "4号链接多少钱？"}]),
        replace(REQUEST, messages=[{"role": "system", "content": "3号链接多少钱？"}]),
        replace(REQUEST, tools=[{"type": "function", "function": {"name": "f"}}]),
        replace(REQUEST, response_schema={"name": "r", "schema": {}}),
        replace(REQUEST, parameters={"temperature": 0}),
        replace(REQUEST, repeat=1),
    ],
)
def test_a_call_that_differs_in_anything_is_made(evaluation: Evaluation, other: ChatRequest) -> None:
    model = Endpoint()
    ask(evaluation, model, REQUEST)
    ask(evaluation, model, other)
    assert model.asked == 2


def test_another_role_is_another_call(evaluation: Evaluation) -> None:
    model = Endpoint()
    ask(evaluation, model, REQUEST)
    ask(evaluation, model, REQUEST, role="judge")
    assert model.asked == 2


def test_the_order_of_parameters_makes_no_difference_and_that_of_a_schema_does(
    evaluation: Evaluation,
) -> None:
    model = Endpoint()
    parameters = {"temperature": 0, "top_p": 1}
    ask(evaluation, model, replace(REQUEST, parameters=parameters))
    ask(evaluation, model, replace(REQUEST, parameters=dict(reversed(parameters.items()))))
    assert model.asked == 1
    schema = {"name": "r", "schema": {"properties": {"a": {}, "b": {}}}}
    turned = {"name": "r", "schema": {"properties": {"b": {}, "a": {}}}}
    ask(evaluation, model, replace(REQUEST, response_schema=schema), replace(REQUEST, response_schema=turned))
    assert model.asked == 3


def test_a_program_behind_a_model_that_has_changed_is_asked_again(evaluation: Evaluation) -> None:
    model = Endpoint()
    for release in ("1", "1", "2"):
        model.identity = release  # type: ignore[attr-defined]
        ask(evaluation, model, REQUEST)
    assert model.asked == 2


def test_identical_calls_under_way_at_once_are_one_call(evaluation: Evaluation) -> None:
    model = Endpoint(lambda: asyncio.sleep(0.01))
    replies = ask(evaluation, model, *[REQUEST] * 5)
    assert {reply.content for reply in replies} == {"answer 1"}
    assert sorted(reply.is_cached for reply in replies) == [False, True, True, True, True]
    assert usage(evaluation) == (1, 4, 0)


def test_base_and_candidate_in_one_process_share_a_call_under_way(evaluation: Evaluation) -> None:
    other = make_evaluation(evaluation.harness, repeats=2)
    model = Endpoint(lambda: asyncio.sleep(0.01))
    ledgers = [Ledger(evaluation), Ledger(other)]

    async def go() -> None:
        models = [ledger.wrap("judge", NamedModel(model, "m")).model for ledger in ledgers]
        await asyncio.gather(*(one.complete(REQUEST) for one in models))
        # Before anything of it is stored.
        await models[1].complete(REQUEST)

    async_to_sync(go)()
    assert model.asked == 1


def test_one_that_is_cancelled_leaves_the_call_to_the_next(evaluation: Evaluation) -> None:
    is_asked = asyncio.Event()

    async def take_a_while() -> None:
        is_asked.set()
        await asyncio.sleep(0.02)

    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("policy", NamedModel(Endpoint(take_a_while), "m")).model

    async def go() -> ChatReply:
        first, second = (asyncio.create_task(wrapped.complete(REQUEST)) for _ in range(2))
        await is_asked.wait()
        first.cancel()
        return await second

    assert async_to_sync(go)().content == "answer 2"
    assert ledger.in_flight == 0


def test_a_failure_is_never_kept(evaluation: Evaluation) -> None:
    async def fail() -> None:
        raise ChatError("down", "server", retryable=True)

    model = Endpoint(fail)
    (failure,) = ask(evaluation, model, REQUEST)
    assert (failure.kind, failure.retryable) == ("server", True)
    model.before = None
    (reply,) = ask(evaluation, model, REQUEST)
    assert (reply.is_cached, usage(evaluation)) == (False, (1, 0, 1))


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


def test_a_fresh_evaluation_takes_its_own_answers_only(evaluation: Evaluation) -> None:
    model = Endpoint()
    ask(evaluation, model, REQUEST)
    evaluation.is_fresh = True
    ask(evaluation, model, REQUEST)
    assert model.asked == 2
    ask(evaluation, model, REQUEST)
    assert model.asked == 2


def test_nothing_is_kept_where_the_operator_says_so(evaluation: Evaluation, settings: Settings) -> None:
    settings.EVALUATION_CACHE = False
    model = Endpoint()
    replies = ask(evaluation, model, REQUEST, REQUEST)
    assert (model.asked, ModelCall.objects.count()) == (2, 0)
    assert [(reply.cache_key, reply.is_cached) for reply in replies] == [("", False)] * 2
    assert usage(evaluation) == (2, 0, 0)


def test_a_forgotten_answer_is_asked_for_again(evaluation: Evaluation) -> None:
    model = Endpoint()
    (reply,) = ask(evaluation, model, REQUEST)
    ledger = Ledger(evaluation)

    async def forget() -> None:
        ledger.forget([reply.cache_key, ""])

    work(ledger, forget)
    (again,) = ask(evaluation, model, REQUEST)
    assert (again.content, again.is_cached) == ("answer 2", False)


def test_an_answer_that_takes_the_place_of_a_forgotten_one_is_kept(evaluation: Evaluation) -> None:
    model = Endpoint()
    (reply,) = ask(evaluation, model, REQUEST)
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("policy", NamedModel(model, "m")).model

    async def forget_and_ask() -> list[ChatReply]:
        ledger.forget([reply.cache_key])
        return [await wrapped.complete(REQUEST), await wrapped.complete(REQUEST)]

    work(ledger, forget_and_ask)
    (again,) = ask(evaluation, model, REQUEST)
    assert (again.content, again.is_cached, model.asked) == ("answer 2", True, 2)


def test_an_answer_forgotten_before_it_was_stored_is_never_kept(evaluation: Evaluation) -> None:
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("judge", NamedModel(Endpoint(), "m")).model

    async def ask_and_forget() -> None:
        reply = await wrapped.complete(REQUEST)
        ledger.forget([reply.cache_key])

    work(ledger, ask_and_forget)
    assert (ModelCall.objects.count(), usage(evaluation)) == (0, (1, 0, 0))


def test_what_a_database_cannot_keep_is_replaced_in_the_first_reply_too(evaluation: Evaluation) -> None:
    model = Endpoint(content="a\0b\ud800", latency_ms=float("nan"))
    (first,) = ask(evaluation, model, REQUEST)
    (second,) = ask(evaluation, model, REQUEST)
    assert first.content == second.content == "a\ufffdb\ufffd"
    assert (first.latency_ms, second.latency_ms) == (0, 0)


def test_a_request_with_half_a_surrogate_pair_has_a_key(evaluation: Evaluation) -> None:
    request = ChatRequest("m", [{"role": "user", "content": "\ud800"}])
    (reply,) = ask(evaluation, Endpoint(), request)
    assert reply.cache_key


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


def test_connections_are_kept_open_through_the_ledger(evaluation: Evaluation) -> None:
    class Connected(Endpoint):
        events: list[str] = []

        async def __aenter__(self) -> None:
            self.events.append("open")

        async def __aexit__(self, *_: object) -> None:
            self.events.append("closed")

    wrapped: Any = Ledger(evaluation).wrap("policy", NamedModel(Connected(), "m")).model

    async def go() -> None:
        async with wrapped:
            assert Connected.events == ["open"]

    async_to_sync(go)()
    assert Connected.events == ["open", "closed"]


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
