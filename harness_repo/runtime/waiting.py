"""What a run's time limit leaves out: the time that its calls wait to be made, which is nobody's doing who is measured.

Whoever makes an agent's calls wait, for a place at an endpoint or for a server that is down, does so inside
`uncounted`.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_clock: ContextVar[asyncio.Timeout | None] = ContextVar("clock", default=None)


@contextmanager
def counting_on(clock: asyncio.Timeout) -> Iterator[None]:
    """Have what runs inside stop this clock while it waits."""
    token = _clock.set(clock)
    try:
        yield
    finally:
        _clock.reset(token)


@contextmanager
def uncounted() -> Iterator[None]:
    """Stop the clock of the run that this is part of, if it is part of one; may be nested."""
    clock = _clock.get()
    until = None if clock is None or clock.expired() else clock.when()
    if clock is None or until is None:
        yield
        return
    loop = asyncio.get_running_loop()
    left = until - loop.time()
    clock.reschedule(None)
    try:
        yield
    finally:
        clock.reschedule(loop.time() + left)
