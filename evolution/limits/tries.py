"""Lets whoever pays for calls, and whoever limits them, hear of every try: each is a request to the server."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar

from harness_repo.runtime.chat import ChatError

BeforeRetry = Callable[[ChatError], Awaitable[None]]

TakeTurn = Callable[[], Awaitable[None]]

_watcher: ContextVar[BeforeRetry | None] = ContextVar("before_retry", default=None)
_payer: ContextVar[TakeTurn | None] = ContextVar("before_request", default=None)
_limiter: ContextVar[TakeTurn | None] = ContextVar("take_turn", default=None)


@contextlib.contextmanager
def watch_tries(before_retry: BeforeRetry, before_request: TakeTurn | None = None) -> Iterator[None]:
    """Inside, a model that asks again after a failed try calls `before_retry` first; what that raises ends the call.

    One that waits for places, and says so by `announces_requests`, calls `before_request` when it has one.
    """
    tokens = _watcher.set(before_retry), _payer.set(before_request)
    try:
        yield
    finally:
        _watcher.reset(tokens[0])
        _payer.reset(tokens[1])


async def announce_request() -> None:
    """Called by a model that has a place, right before each request; raises what the one who pays raises."""
    payer = _payer.get()
    if payer is not None:
        await payer()


async def announce_retry(failure: ChatError) -> None:
    """Called by a model before it asks again; raises what the one who pays raises."""
    watcher = _watcher.get()
    if watcher is not None:
        await watcher(failure)


@contextlib.contextmanager
def limit_tries(take_turn: TakeTurn) -> Iterator[None]:
    """Inside, a model that sends a further request for the same try waits for `take_turn` first."""
    token = _limiter.set(take_turn)
    try:
        yield
    finally:
        _limiter.reset(token)


async def announce_rewording(failure: ChatError) -> None:
    """Called by a model before it asks the same server in other words; raises what the one who pays raises."""
    await announce_retry(failure)
    limiter = _limiter.get()
    if limiter is not None:
        await limiter()
    await announce_request()
