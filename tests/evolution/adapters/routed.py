"""Calls over several real servers."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable

from evolution.adapters.endpoints import Endpoint
from evolution.adapters.health import Health, HealthRules
from evolution.adapters.openai_chat import OpenAIChatModel
from evolution.adapters.routing import Route, RoutedChatModel
from evolution.limits.places import Places
from harness_repo.runtime.chat import ChatRequest
from tests.evolution.adapters.misbehaving import (
    Server,
)

REQUEST = ChatRequest("m", [{"role": "user", "content": "hello"}])
FAST = HealthRules(fewest_calls=3, cool_down=0.1, most_cool_down=1)
SLOW = HealthRules(fewest_calls=3, cool_down=1000, most_cool_down=1000)


class Clock:
    """The real time, which a test may move on."""

    moved = 0.0

    def __call__(self) -> float:
        return time.monotonic() + self.moved


def route_to(
    server: Server,
    *,
    limit: int = 0,
    places: Places | None = None,
    rules: HealthRules = FAST,
    model: str = "",
    clock: Callable[[], float] = time.monotonic,
) -> Route:
    endpoint = Endpoint(server.url, seconds=2)
    health = Health(endpoint.label, places or Places(limit), rules=rules, clock=clock)
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
