"""Calls over several real servers: where they go, and what an outage costs."""

import asyncio
import random
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from evolution.adapters import routing
from evolution.adapters.endpoints import Endpoint
from evolution.adapters.health import Health, HealthRules
from evolution.adapters.openai_chat import OpenAIChatModel
from evolution.adapters.routing import Route, RoutedChatModel
from evolution.limits.places import Places
from evolution.limits.tries import watch_tries
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest
from tests.evolution.adapters.misbehaving import (
    Server,
    after,
    fail,
    misbehaving,
    reply_with,
    reset,
    silence,
)

REQUEST = ChatRequest("m", [{"role": "user", "content": "hello"}])
FAST = HealthRules(fewest_calls=3, cool_down=0.1, most_cool_down=1)
SLOW = HealthRules(fewest_calls=3, cool_down=1000, most_cool_down=1000)


class Clock:
    """The real time, which a test may move on."""

    moved = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.moved


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routing, "FIRST_BACK_OFF", 0.01)


def route_to(
    server: Server,
    *,
    limit: int = 0,
    rules: HealthRules = FAST,
    model: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> Route:
    endpoint = Endpoint(server.url, seconds=2)
    health = Health(endpoint.label, Places(limit), rules=rules, clock=clock)
    return Route(OpenAIChatModel(endpoint), health, model, stands_for="m")


def run(
    work: Callable[[RoutedChatModel], Awaitable[None]],
    *routes: Route,
    max_retries: int = 4,
    most_wait: float = 5,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    async def enter_and_work() -> None:
        model = RoutedChatModel(routes, max_retries=max_retries, most_wait=most_wait, clock=clock)
        async with asyncio.timeout(20), model:
            await work(model)

    asyncio.run(enter_and_work())


async def ask_many(model: RoutedChatModel, count: int) -> Counter[str]:
    replies = await asyncio.gather(*(model.complete(REQUEST) for _ in range(count)))
    return Counter(str(reply.content) for reply in replies)


async def ask_in_turn(model: RoutedChatModel, count: int) -> Counter[str]:
    return Counter([str((await model.complete(REQUEST)).content) for _ in range(count)])


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
        assert 0.5 <= time.monotonic() - started < 2

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
