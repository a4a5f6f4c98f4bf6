"""Waiting for a place: who stands in line, and is woken at most once, from any thread."""

import asyncio
import contextlib
import threading

from evolution.limits.places import Places

# Seconds after which somebody who waits for a place looks by itself: a thread may have freed one unseen.
LOOK_AGAIN = 1.0


class Turn:
    """Somebody that sleeps until there is a place; woken at most once, from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._once = threading.Lock()

    @property
    def is_woken(self) -> bool:
        """Whether it has been woken; it can't be again."""
        return self._once.locked()

    def wake(self) -> bool:
        """Wake it; False when that has been done."""
        if not self._once.acquire(blocking=False):
            return False
        try:
            self._loop.call_soon_threadsafe(self._woken.set)
        except RuntimeError:
            # Its loop was closed under it.
            return False
        return True

    async def wait(self, seconds: float) -> None:
        """Sleep until woken, at most so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()


async def wait_for_place(places: Places, cost: int = 0) -> None:
    """Take a place, in turn; it is to be given back."""
    turn: Turn | None = None
    try:
        while not places.take(turn, cost):
            if turn is None or turn.is_woken:
                turn = Turn()
                places.queue(turn, cost)
            # One that was freed between the two was promised to nobody.
            if places.is_full():
                await turn.wait(LOOK_AGAIN)
    finally:
        if turn is not None:
            places.leave(turn)


async def wait_anew(places: Places, cost: int = 0) -> None:
    """Wait for another turn with a place that is held; it is held in any case, and to be given back."""
    places.give_back()
    try:
        await wait_for_place(places, cost)
    except BaseException:
        places.hold()
        raise
