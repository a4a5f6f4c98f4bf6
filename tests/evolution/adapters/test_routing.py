"""Calls over several real servers: where they go, and what an outage costs."""

import asyncio
import time
from collections import Counter
from dataclasses import replace

import pytest

from evolution.adapters import routing
from evolution.adapters.endpoints import Endpoint
from evolution.adapters.health import Health, HealthRules
from evolution.adapters.openai_chat import OpenAIChatModel
from evolution.adapters.routing import Route, RoutedChatModel
from evolution.limits.places import Places, Waiting
from evolution.limits.tries import watch_tries
from harness_repo.runtime.chat import ChatError, ChatRequest
from tests.evolution.adapters.misbehaving import (
    after,
    fail,
    misbehaving,
    reply_with,
    reset,
)
from tests.evolution.adapters.routed import REQUEST, SLOW, Clock, ask_in_turn, ask_many, route_to, run


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "FIRST_BACK_OFF", 0.01)


def test_calls_one_by_one_go_round() -> None:
    async def work(model: RoutedChatModel) -> None:
        assert await ask_in_turn(model, 6) == {"a": 2, "b": 2, "c": 2}

    with (
        misbehaving(reply_with("a")) as a,
        misbehaving(reply_with("b")) as b,
        misbehaving(reply_with("c")) as c,
    ):
        run(work, route_to(a), route_to(b), route_to(c))


def test_slow_endpoint_gets_fewer_calls() -> None:
    async def work(model: RoutedChatModel) -> None:
        places = asyncio.Semaphore(4)

        async def ask() -> str:
            async with places:
                return str((await model.complete(REQUEST)).content)

        counts = Counter(await asyncio.gather(*(ask() for _ in range(40))))
        assert counts["fast"] > counts["slow"] > 0

    with misbehaving(after(0.3, reply_with("slow"))) as slow, misbehaving(reply_with("fast")) as fast:
        run(work, route_to(slow), route_to(fast))


def test_failed_call_goes_to_another_endpoint_without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "FIRST_BACK_OFF", 60)

    async def work(model: RoutedChatModel) -> None:
        assert await ask_in_turn(model, 2) == {"good": 2}

    with misbehaving(reset) as bad, misbehaving(reply_with("good")) as good:
        run(work, route_to(bad), route_to(good))
        assert len(bad.bodies) == 2


def test_endpoint_that_fails_is_isolated_then_tried_once_and_taken_back() -> None:
    clock = Clock()

    async def work(model: RoutedChatModel) -> None:
        health = model.routes[0].health
        assert await ask_in_turn(model, 12) == {"good": 12}
        assert (health.state(), len(bad.bodies)) == ("isolated", 3)
        bad.script = [after(0.1, reply_with("back"))]
        clock.moved += SLOW.cool_down
        await ask_many(model, 8)
        # One call tried it; the others did not wait for that.
        assert (health.state(), len(bad.bodies)) == ("serving", 4)
        assert (await ask_many(model, 8))["back"] == 4

    with misbehaving(fail(500)) as bad, misbehaving(reply_with("good")) as good:
        run(work, route_to(bad, rules=SLOW, clock=clock), route_to(good))


def test_no_call_goes_to_a_server_that_asked_to_wait() -> None:
    async def work(model: RoutedChatModel) -> None:
        assert await ask_in_turn(model, 6) == {"good": 6}
        assert len(busy.bodies) == 1

    with misbehaving(fail(429, Retry_After="30")) as busy, misbehaving(reply_with("good")) as good:
        run(work, route_to(busy), route_to(good))


def test_only_endpoint_is_waited_for_as_long_as_it_asks() -> None:
    async def work(model: RoutedChatModel) -> None:
        started = time.monotonic()
        assert await ask_many(model, 3) == {"hi": 3}
        assert time.monotonic() - started >= 0.5

    with misbehaving(fail(429, Retry_After="0.5"), after(0.05, reply_with("hi"))) as server:
        run(work, route_to(server))


def test_lone_call_that_is_turned_away_waits_as_long_as_it_was_asked_and_others_do_not() -> None:
    async def work(model: RoutedChatModel) -> None:
        await ask_in_turn(model, 12)
        server.script = [fail(429, Retry_After="1.5"), reply_with("hi")]
        started = time.monotonic()
        turned_away = asyncio.create_task(model.complete(REQUEST))
        await asyncio.sleep(0.1)
        assert await ask_in_turn(model, 5) == {"hi": 5}
        assert not turned_away.done()
        assert (await turned_away).content == "hi"
        assert time.monotonic() - started >= 1.5

    with misbehaving(reply_with("hi")) as server:
        run(work, route_to(server))


def test_lone_call_that_is_turned_away_goes_elsewhere_at_once() -> None:
    async def work(model: RoutedChatModel) -> None:
        await ask_in_turn(model, 24)
        a.script = [fail(429, Retry_After="5"), reply_with("a")]
        started = time.monotonic()
        assert (await ask_in_turn(model, 3))["b"] >= 1
        assert time.monotonic() - started < 5

    with misbehaving(reply_with("a")) as a, misbehaving(reply_with("b")) as b:
        run(work, route_to(a), route_to(b))


def test_whoever_pays_hears_of_each_further_try_and_may_end_the_call() -> None:
    heard: list[str] = []

    async def pay(failure: ChatError) -> None:
        heard.append(failure.kind)
        if len(heard) == 2:
            raise ChatError("spent", "budget")

    async def work(model: RoutedChatModel) -> None:
        with watch_tries(pay), pytest.raises(ChatError, match="spent"):
            await model.complete(REQUEST)

    with misbehaving(fail(500)) as server:
        run(work, route_to(server))
        assert (heard, len(server.bodies)) == (["server", "server"], 2)


def test_pause_beyond_the_patience_is_told_at_once_with_its_length() -> None:
    async def work(model: RoutedChatModel) -> None:
        for _ in range(2):
            with pytest.raises(ChatError, match=r"no endpoint takes calls") as raised:
                await model.complete(REQUEST)
            assert (raised.value.kind, raised.value.retryable) == ("rate_limit", True)
            assert raised.value.retry_after == pytest.approx(600, abs=5)
        assert len(server.bodies) == 1

    with misbehaving(fail(429, Retry_After="600")) as server:
        run(work, route_to(server))


def test_outage_of_every_endpoint_is_waited_out() -> None:
    async def work(model: RoutedChatModel) -> None:
        waiting = asyncio.create_task(ask_many(model, 10))
        await asyncio.sleep(0.4)
        asked = len(a.bodies) + len(b.bodies)
        a.script = b.script = [reply_with("back")]
        assert (await waiting) == {"back": 10}
        # While both were isolated they got a call each in every cool-down, not ten.
        assert asked < 40

    with misbehaving(fail(503)) as a, misbehaving(fail(503)) as b:
        run(work, route_to(a), route_to(b), max_retries=8)


def test_long_outage_is_told_at_once_with_its_reason() -> None:
    clock = Clock()

    async def work(model: RoutedChatModel) -> None:
        for _ in range(3):
            with pytest.raises(ChatError, match="503"):
                await model.complete(REQUEST)
        clock.moved += 61
        with pytest.raises(ChatError, match=r"no endpoint takes calls now .* 503") as raised:
            await model.complete(REQUEST)
        assert (raised.value.kind, raised.value.retryable) == ("server", True)
        assert raised.value.retry_after == pytest.approx(SLOW.cool_down - 61, abs=10)
        assert len(server.bodies) == 3

    with misbehaving(fail(503)) as server:
        route = route_to(server, rules=SLOW, clock=clock)
        run(work, route, max_retries=0, most_wait=60, clock=clock)


def test_refused_request_is_not_sent_elsewhere() -> None:
    async def work(model: RoutedChatModel) -> None:
        with pytest.raises(ChatError) as raised:
            await model.complete(REQUEST)
        assert raised.value.kind == "refused"

    with misbehaving(fail(400)) as first, misbehaving() as second:
        run(work, route_to(first), route_to(second))
        assert len(first.bodies) + len(second.bodies) == 1


def test_endpoint_without_the_model_or_a_valid_key_is_avoided() -> None:
    async def work(model: RoutedChatModel) -> None:
        assert await ask_in_turn(model, 6) == {"good": 6}

    with misbehaving(fail(404)) as lacking, misbehaving(reply_with("good")) as good:
        run(work, route_to(lacking), route_to(good))
        assert len(lacking.bodies) == 1


def test_wrong_key_everywhere_is_told_as_it_is() -> None:
    async def work(model: RoutedChatModel) -> None:
        with pytest.raises(ChatError) as raised:
            await model.complete(REQUEST)
        assert (raised.value.kind, raised.value.retryable) == ("configuration", False)

    with misbehaving(fail(401)) as first, misbehaving(fail(401)) as second:
        run(work, route_to(first), route_to(second))
        assert (len(first.bodies), len(second.bodies)) == (1, 1)


def test_last_error_says_how_often_it_was_tried() -> None:
    async def work(model: RoutedChatModel) -> None:
        with pytest.raises(ChatError, match="the last of 3 tries"):
            await model.complete(REQUEST)

    with misbehaving(fail(500)) as server:
        run(work, route_to(server, rules=HealthRules()), max_retries=2)
        assert len(server.bodies) == 3


def test_each_endpoint_is_asked_for_the_model_by_its_own_name() -> None:
    async def work(model: RoutedChatModel) -> None:
        await ask_in_turn(model, 2)

    with misbehaving() as a, misbehaving() as b:
        run(work, route_to(a, model="deployment-7"), route_to(b))
        assert [server.bodies[0]["model"] for server in (a, b)] == ["deployment-7", "m"]


def test_a_name_that_an_endpoint_has_no_word_for_is_asked_as_it_is() -> None:
    """What an evaluation recorded before the setting changed is never measured by today's model."""

    async def work(model: RoutedChatModel) -> None:
        await model.complete(ChatRequest("recorded", [{"role": "user", "content": "x"}]))

    with misbehaving() as server:
        run(work, route_to(server, model="deployment-7"))
        assert server.bodies[0]["model"] == "recorded"


def test_it_sends_seeds_as_long_as_one_of_its_endpoints_is_sent_any() -> None:
    def sends_seeds(*settings: bool) -> bool:
        endpoints = [Endpoint("http://127.0.0.1:9/v1", seed=seed) for seed in settings]
        routes = [Route(OpenAIChatModel(endpoint), Health("a", Places())) for endpoint in endpoints]
        return RoutedChatModel(routes).seeds

    assert (sends_seeds(True), sends_seeds(False, True), sends_seeds(False)) == (True, True, False)


SHAPED = replace(REQUEST, response_schema={"name": "s", "schema": {"type": "object"}})


class Rated(Places):
    """Places of an endpoint with a limit per minute; counts what is taken of it."""

    has_rates = True
    taken = 0

    def take(self, waiting: Waiting | None = None, cost: int = 0) -> bool:
        is_taken = super().take(waiting, cost)
        self.taken += is_taken
        return is_taken


def test_each_request_in_other_words_is_paid_for_and_one_of_those_per_minute() -> None:
    paid: list[str] = []

    async def pay(failure: ChatError) -> None:
        paid.append(failure.kind)

    async def work(model: RoutedChatModel) -> None:
        with watch_tries(pay), pytest.raises(ChatError, match="no"):
            await model.complete(SHAPED)

    with misbehaving(fail(400, "no")) as server:
        places = Rated(1)
        route = route_to(server, places=places)
        run(work, route)
        assert len(server.bodies) == places.taken == 1 + len(paid) == 3
    assert places.in_flight == 0


def test_a_request_in_other_words_that_is_not_paid_for_is_not_sent_nor_held_against_the_server() -> None:
    async def refuse(_failure: ChatError) -> None:
        raise ChatError("used up", "budget")

    async def work(model: RoutedChatModel) -> None:
        with watch_tries(refuse), pytest.raises(ChatError, match="used up"):
            await model.complete(SHAPED)

    with misbehaving(fail(400, "no")) as server:
        route = route_to(server, limit=1)
        run(work, route)
        assert len(server.bodies) == 1
    assert (route.health.calls(), route.health.places.in_flight) == (0, 0)


def test_each_request_is_told_once_there_is_a_place_for_it_and_not_sent_when_it_is_refused() -> None:
    told: list[int] = []

    async def pay() -> None:
        told.append(route.health.places.in_flight)
        if len(told) > 2:
            raise ChatError("used up", "budget")

    async def note(_failure: ChatError) -> None: ...

    async def work(model: RoutedChatModel) -> None:
        with watch_tries(note, pay), pytest.raises(ChatError, match="used up"):
            await model.complete(REQUEST)

    with misbehaving(fail(500)) as server:
        route = route_to(server, limit=1)
        run(work, route)
        assert len(server.bodies) == 2
    assert (told, route.health.places.in_flight) == ([1, 1, 1], 0)
