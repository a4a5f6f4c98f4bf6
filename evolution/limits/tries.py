"""Lets whoever pays for calls hear of every try: a call that is asked again has cost a try already."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar

from harness_repo.runtime.chat import ChatError

BeforeRetry = Callable[[ChatError], Awaitable[None]]

_watcher: ContextVar[BeforeRetry | None] = ContextVar("before_retry", default=None)


@contextlib.contextmanager
def watch_tries(before_retry: BeforeRetry) -> Iterator[None]:
    """Inside, a model that asks again after a failed try calls `before_retry` first; what that raises ends the call."""
    token = _watcher.set(before_retry)
    try:
        yield
    finally:
        _watcher.reset(token)


async def announce_retry(failure: ChatError) -> None:
    """Called by a model before it asks again; raises what the one who pays raises."""
    watcher = _watcher.get()
    if watcher is not None:
        await watcher(failure)
