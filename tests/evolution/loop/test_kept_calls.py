import asyncio
import contextlib
from dataclasses import replace
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from pytest_django import Settings

from evolution.loop.kept_calls import Ledger
from evolution.models import Evaluation, ModelCall
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, ToolCall
from tests.evolution.asking import REQUEST, Endpoint, ask, usage, work
from tests.evolution.measured import make_evaluation, make_harness

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation(make_harness())


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


def test_a_request_with_half_a_surrogate_pair_has_a_key(evaluation: Evaluation) -> None:
    request = ChatRequest("m", [{"role": "user", "content": "\ud800"}])
    (reply,) = ask(evaluation, Endpoint(), request)
    assert reply.cache_key


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


class Seeding(Endpoint):
    """Says whether it is sent the seed of a repeat."""

    def __init__(self, *, seeds: bool) -> None:
        super().__init__()
        self.seeds = seeds


def test_an_answer_made_without_a_seed_is_not_one_made_with_it(evaluation: Evaluation) -> None:
    seeded, seedless = Seeding(seeds=True), Seeding(seeds=False)
    for model in (seeded, seedless, seedless):
        ask(evaluation, model, REQUEST)
    assert (seeded.asked, seedless.asked) == (1, 1)


def test_a_seed_of_the_harness_is_sent_whatever_the_endpoint_is_set_to(evaluation: Evaluation) -> None:
    request = replace(REQUEST, parameters={"seed": 5})
    seeded, seedless = Seeding(seeds=True), Seeding(seeds=False)
    for model in (seeded, seedless):
        ask(evaluation, model, request)
    assert (seeded.asked, seedless.asked) == (1, 0)


def test_a_key_depends_on_what_is_sent_of_the_parameters(evaluation: Evaluation) -> None:
    model = Endpoint()
    schema: dict[str, Any] = {"x": {"a": 1, "b": 2}, 5: 1}  # type: ignore[dict-item]
    ask(evaluation, model, replace(REQUEST, parameters=schema))
    # "stream" is never sent.
    ask(evaluation, model, replace(REQUEST, parameters={5: 1, "stream": True, "x": {"a": 1, "b": 2}}))  # type: ignore[dict-item]
    assert model.asked == 1
    ask(evaluation, model, replace(REQUEST, parameters={5: 1, "x": {"b": 2, "a": 1}}))  # type: ignore[dict-item]
    assert model.asked == 2


def test_a_call_that_was_cut_off_is_no_failure(evaluation: Evaluation) -> None:
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap("policy", NamedModel(Endpoint(asyncio.Event().wait), "m")).model

    async def cut_off() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await wrapped.complete(REQUEST)

    work(ledger, cut_off)
    assert not evaluation.usage.exists()
