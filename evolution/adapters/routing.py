"""One chat model made of several endpoints: a call goes to the least loaded one, and to another when that fails."""

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from evolution.adapters.health import Health, Ticket
from evolution.adapters.token_estimates import TokenEstimates
from evolution.limits.pacing import step_back
from evolution.limits.places import Places
from evolution.limits.tries import announce_request, announce_retry, limit_tries
from evolution.limits.waiting import Turn, wait_anew
from harness_repo.runtime.chat import ChatError, ChatModel, ChatReply, ChatRequest, Usage
from harness_repo.runtime.waiting import uncounted

# Seconds before a call asks again where it failed: the first time, and at most.
FIRST_BACK_OFF = 0.5
MOST_BACK_OFF = 8.0
# Seconds after which a call that waits for a place looks by itself: a thread may have freed one unseen.
LOOK_AGAIN = 1.0


@dataclass(frozen=True)
class Route:
    """An endpoint that serves a role."""

    model: ChatModel
    health: Health
    # What this endpoint calls the model that requests call `stands_for`; any other name goes out as it is.
    model_name: str = ""
    stands_for: str = ""
    tokens: TokenEstimates = field(default_factory=TokenEstimates)

    def cost(self, request: ChatRequest) -> int:
        """What a request will take of the endpoint's limit on tokens; 0 where it has none."""
        return self.tokens.estimate(request) if self.health.places.counts_tokens else 0

    def settle(self, request: ChatRequest, cost: int, usage: Usage) -> None:
        """Take into account what a request has taken of which `cost` was expected."""
        if cost:
            self.health.places.settle(cost, usage.prompt_tokens + usage.completion_tokens or cost)
            self.tokens.learn(request, usage)

    async def ask(self, request: ChatRequest) -> ChatReply:
        """Pass a request on; ChatError as the model raises it."""
        if self.model_name and request.model == self.stands_for:
            request = replace(request, model=self.model_name)
        return await self.model.complete(request)


class RoutedChatModel:
    """A ChatModel over the endpoints of a role, with retries.

    A call that fails goes to an endpoint that has not failed it yet; when all have, it backs off and begins anew, up
    to `max_retries` times in all. What servers ask to wait (Retry-After) is waited: by the
    call that was turned away and, where that happens to many, by all. While every endpoint is paused or isolated a
    call waits, in all no longer than `most_wait` seconds, and no longer than that after the last one was isolated: what
    is down for longer is told at once. Raises ChatError; a request that was refused is not repeated.

    Entered as an async context manager it keeps its connections until it is left.
    """

    # See evolution.limits.tries.
    announces_requests = True

    def __init__(
        self,
        routes: Sequence[Route],
        *,
        max_retries: int = 4,
        most_wait: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.routes = tuple(routes)
        self._max_retries = max_retries
        self._most_wait = most_wait
        self._clock = clock
        self._connections: contextlib.AsyncExitStack | None = None

    @property
    def seeds(self) -> bool:
        """Whether any endpoint is sent the seed of a repeat: which one answers a call is chance."""
        return any(getattr(route.model, "seeds", True) for route in self.routes)

    async def __aenter__(self) -> Self:
        async with contextlib.AsyncExitStack() as stack:
            for route in self.routes:
                if isinstance(route.model, contextlib.AbstractAsyncContextManager):
                    await stack.enter_async_context(route.model)
            self._connections = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        connections, self._connections = self._connections, None
        if connections is not None:
            await connections.aclose()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer the request, or raise ChatError."""
        call = _Call(request, self.routes, self._max_retries, self._most_wait, self._clock)
        while True:
            route, ticket = await call.find_place()
            try:
                reply = await _ask(route, ticket, request)
            except ChatError as failure:
                if failure.kind == "budget":
                    # Not the server's: the next request to it is not to be paid for.
                    route.health.abandon(ticket)
                    raise
                route.health.finish(ticket, failure)
                call.note(route, failure)
                await announce_retry(failure)
            except BaseException:
                route.health.abandon(ticket)
                raise
            else:
                route.health.finish(ticket, None)
                route.settle(request, ticket.cost, reply.usage)
                await step_back()
                return reply


async def _ask(route: Route, ticket: Ticket, request: ChatRequest) -> ChatReply:
    """Ask an endpoint; each request that it takes for that is one of those that it takes in a minute."""
    # In line nothing is paid for: what a killed process has lost is what it has sent.
    await announce_request()
    places = route.health.places
    if not places.has_rates:
        return await route.ask(request)
    with limit_tries(partial(wait_anew, places, ticket.cost)):
        return await route.ask(request)


class _Call:
    """One call on its way: where it has been, and how much longer it may take."""

    def __init__(
        self,
        request: ChatRequest,
        routes: Sequence[Route],
        max_retries: int,
        most_wait: float,
        clock: Callable[[], float],
    ) -> None:
        self._request = request
        # Those that may answer it.
        self._left = list(routes)
        # When those may be asked again that asked this call to wait, and not all.
        self._ready_at: dict[int, float] = {}
        # Those that have failed it since it last backed off.
        self._failed: list[Route] = []
        self._failures = 0
        self._max_retries = max_retries
        self._most_wait = most_wait
        self._patience = most_wait
        self._back_offs = 0
        self._clock = clock
        # Where it stands in line, and as whom.
        self._queues: list[Places] = []
        self._waiting: Turn | None = None

    async def find_place(self) -> tuple[Route, Ticket]:
        """The endpoint to ask next and the ticket for it; waits for one, or raises ChatError when none will do."""
        try:
            while True:
                alone = all(route.health.isolated_at is not None for route in self._left)
                fresh = self._fresh()
                for route in sorted(fresh, key=self._preference) if len(fresh) > 1 else fresh:
                    cost = route.cost(self._request)
                    if ticket := route.health.try_start(alone=alone, waiting=self._waiting, cost=cost):
                        return route, ticket
                # Busy ones are worth waiting for; else those that failed are as good once a while has passed.
                is_nobody_left = all(route.health.seconds_left(alone=alone) > 0 for route in fresh)
                with uncounted():
                    if not fresh or (self._failed and is_nobody_left):
                        await self._back_off()
                    else:
                        await self._wait(fresh, alone=alone)
        finally:
            self._leave_queues()

    def note(self, route: Route, failure: ChatError) -> None:
        """Take a failure into account; raises it when it is the call's last word."""
        self._failures += 1
        if failure.kind == "refused":
            raise failure
        if failure.retryable:
            self._failed.append(route)
            if failure.retry_after and not route.health.seconds_left(alone=True):
                self._ready_at[id(route)] = self._clock() + failure.retry_after
        else:
            self._left.remove(route)
        if not self._left or self._failures > self._max_retries:
            raise self._last_word(failure)

    def _fresh(self) -> list[Route]:
        """Those that have not failed it of late, and may be asked."""
        return [
            route
            for route in self._left
            if route not in self._failed and self._seconds_until_ready(route) <= 0
        ]

    def _seconds_until_ready(self, route: Route) -> float:
        ready_at = self._ready_at.get(id(route))
        return ready_at - self._clock() if ready_at is not None else 0.0

    def _preference(self, route: Route) -> tuple[bool, int, float]:
        """Least loaded first; of equals, the one that has not been asked for longest."""
        places = route.health.places
        return route.health.is_avoided(), places.in_flight, places.last_taken

    async def _back_off(self) -> None:
        seconds = min(FIRST_BACK_OFF * 2**self._back_offs, MOST_BACK_OFF)
        self._back_offs += 1
        self._failed.clear()
        self._leave_queues()
        asked = min(self._seconds_until_ready(route) for route in self._left)
        # Calls that failed together need not come back together.
        chance = random.random()  # noqa: S311
        await asyncio.sleep(max(seconds * (0.75 + chance / 4), asked * (1 + chance / 20)))

    async def _wait(self, routes: Sequence[Route], *, alone: bool) -> None:
        """Wait until one of them may have a place; ChatError when none will in time."""
        lefts = [route.health.seconds_left(alone=alone) for route in routes]
        soonest = min(lefts)
        if soonest == 0:
            # Busy, and its calls end within their own time; one that has just become free needs no waiting for.
            busy = [route for route, left in zip(routes, lefts, strict=True) if left == 0]
            if all(route.health.places.is_full() for route in busy):
                await self._sleep(busy, min([LOOK_AGAIN, *filter(None, lefts)]), in_line=True)
            return
        patience = self._patience_left(alone=alone)
        if patience <= 0 or patience < soonest < float("inf"):
            raise self._nobody(soonest)
        started = self._clock()
        # Those that wait for the same moment come one after the other.
        await self._sleep(routes, min(soonest * random.uniform(1, 1.1), patience), in_line=False)  # noqa: S311
        self._patience -= self._clock() - started

    def _patience_left(self, *, alone: bool) -> float:
        if not alone:
            return self._patience
        isolated = [route.health.isolated_at or 0.0 for route in self._left]
        return min(self._patience, max(isolated) + self._most_wait - self._clock())

    async def _sleep(self, routes: Sequence[Route], seconds: float, *, in_line: bool) -> None:
        """Sleep until an endpoint wakes us, at most so long; who stands in line stays there when nobody did."""
        queues = [route.health.places for route in routes]
        if self._waiting is None or self._waiting.is_woken or not in_line or queues != self._queues:
            self._leave_queues()
            self._waiting, self._queues = Turn(), queues
            for route in routes:
                if in_line:
                    route.health.places.queue(self._waiting, route.cost(self._request))
                else:
                    route.health.places.watch(self._waiting)
        await self._waiting.wait(seconds)
        if not in_line:
            self._leave_queues()

    def _leave_queues(self) -> None:
        if self._waiting is not None:
            for places in self._queues:
                places.leave(self._waiting)
        self._waiting, self._queues = None, []

    def _nobody(self, seconds: float) -> ChatError:
        """The error of a call that no endpoint will take in time."""
        failures = [route.health.last_failure for route in self._left]
        last = next((failure for failure in failures if failure is not None), None)
        labels = ", ".join(route.health.label for route in self._left)
        text = f"no endpoint takes calls now ({labels}); the last one said: {last}"
        wait = seconds if seconds != float("inf") else None
        return ChatError(text, last.kind if last else "server", retryable=True, retry_after=wait)

    def _last_word(self, failure: ChatError) -> ChatError:
        if self._failures == 1:
            return failure
        text = f"{failure} (the last of {self._failures} tries)"
        kind, wait = failure.kind, failure.retry_after
        return ChatError(text, kind, retryable=failure.retryable, retry_after=wait)
