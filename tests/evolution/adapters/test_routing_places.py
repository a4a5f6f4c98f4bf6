"""Calls over several real servers: who waits for a place, and that none is lost."""

import asyncio
import random
import threading
import time
from collections import Counter

import pytest

from evolution.adapters import routing
from evolution.adapters.endpoints import Endpoint
from evolution.adapters.health import Health, HealthRules
from evolution.adapters.openai_chat import OpenAIChatModel
from evolution.adapters.routing import Route, RoutedChatModel
from evolution.limits.places import Places
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest
from tests.evolution.adapters.misbehaving import (
    after,
    misbehaving,
    reply_with,
    silence,
)
from tests.evolution.adapters.routed import REQUEST, ask_many, route_to, run


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "FIRST_BACK_OFF", 0.01)


def test_concurrency_of_an_endpoint_is_kept_and_nobody_starves() -> None:
    async def work(model: RoutedChatModel) -> None:
        assert await ask_many(model, 30) == {"hi": 30}

    with misbehaving(after(0.02, reply_with("hi"))) as a, misbehaving(after(0.02, reply_with("hi"))) as b:
        run(work, route_to(a, limit=2), route_to(b, limit=3))
        assert (a.most_at_once, b.most_at_once) == (2, 3)


def test_place_of_a_cancelled_call_goes_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "LOOK_AGAIN", 60)

    async def work(model: RoutedChatModel) -> None:
        first = asyncio.create_task(model.complete(REQUEST))
        await asyncio.sleep(0.1)
        second, third = (asyncio.create_task(model.complete(REQUEST)) for _ in range(2))
        await asyncio.sleep(0.05)
        server.script = [reply_with("hi")]
        first.cancel()
        second.cancel()
        assert (await third).content == "hi"
        assert (route.health.places.in_flight, route.health.calls()) == (0, 1)

    with misbehaving(silence) as server:
        route = route_to(server, limit=1)
        run(work, route)


def test_limit_holds_over_threads_with_loops_of_their_own() -> None:
    with misbehaving(after(0.02, reply_with("hi"))) as server:
        health = Health("here", Places(2))
        seen: list[Counter[str]] = []

        def work() -> None:
            model = RoutedChatModel([Route(OpenAIChatModel(Endpoint(server.url)), health)])

            async def ask() -> None:
                async with model:
                    seen.append(await ask_many(model, 10))

            asyncio.run(ask())

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [{"hi": 10}] * 3
        assert (server.most_at_once, health.places.in_flight) == (2, 0)


def test_failure_of_our_own_gives_the_place_back() -> None:
    class Broken:
        async def complete(self, request: ChatRequest) -> ChatReply:
            raise ZeroDivisionError(request.model)

    async def work(model: RoutedChatModel) -> None:
        with pytest.raises(ZeroDivisionError):
            await model.complete(REQUEST)
        assert (route.health.places.in_flight, route.health.calls()) == (0, 0)

    route = Route(Broken(), Health("here"))
    run(work, route)


class Counting:
    """Notes who calls."""

    def __init__(self) -> None:
        self.callers: list[str] = []

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.callers.append(request.model)
        await asyncio.sleep(0.001)
        return ChatReply("hi")


def test_who_calls_again_at_once_does_not_overtake_those_who_wait() -> None:
    counting = Counting()

    async def work(model: RoutedChatModel) -> None:
        async def call_often(name: str) -> None:
            for _ in range(4):
                await model.complete(ChatRequest(name, []))

        await asyncio.gather(*(call_often(name) for name in "abc"))
        assert "".join(counting.callers) == "abc" * 4

    run(work, Route(counting, Health("here", Places(1))))


class Pausing(Counting):
    """Turns the first call away for a while."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        reply = await super().complete(request)
        if len(self.callers) == 1:
            raise ChatError("busy", "rate_limit", retryable=True, retry_after=0.3)
        return reply


@pytest.mark.parametrize("limit", [0, 1, 2])
def test_waiting_for_a_pause_to_end_costs_no_computing(limit: int) -> None:
    pausing = Pausing()

    async def work(model: RoutedChatModel) -> None:
        spent = time.process_time()
        assert await ask_many(model, 20) == {"hi": 20}
        # A call that went round in circles would compute as long as the others wait.
        assert time.process_time() - spent < 0.2

    run(work, Route(pausing, Health("here", Places(limit))))


class Moody:
    """An endpoint whose calls end in every way there is, by chance."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance

    async def complete(self, request: ChatRequest) -> ChatReply:
        await asyncio.sleep(self.chance.uniform(0, 0.004))
        failures = [
            ChatError("down", "server", retryable=True),
            ChatError("busy", "rate_limit", retryable=True, retry_after=0.01),
            ChatError("busy", "rate_limit", retryable=True),
            ChatError("no such model", "configuration"),
            ChatError("not that", "refused"),
        ]
        failure = self.chance.choices([None, *failures], [10, 6, 2, 1, 1, 1])[0]
        if failure is not None:
            raise failure
        return ChatReply(request.model)


@pytest.mark.parametrize("seed", range(5))
def test_whatever_happens_every_call_ends_and_every_place_is_given_back(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311
    rules = HealthRules(fewest_calls=3, cool_down=0.01, most_cool_down=0.05, pause=0.01)
    routes = [Route(Moody(chance), Health(str(limit), Places(limit), rules=rules)) for limit in (1, 2, 0)]

    async def work(model: RoutedChatModel) -> None:
        calls = [asyncio.create_task(model.complete(REQUEST)) for _ in range(200)]
        for call in chance.sample(calls, 40):
            await asyncio.sleep(0.002)
            call.cancel()
        ends = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(end) for end in ends} <= {ChatReply, ChatError, asyncio.CancelledError}
        assert sum(isinstance(end, ChatReply) for end in ends) > 50
        assert [route.health.places.in_flight for route in routes] == [0, 0, 0]
        assert "trial" not in [route.health.state() for route in routes]

    run(work, *routes)
