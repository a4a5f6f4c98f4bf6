"""Keeps the shares of this process agreed with those of others: one task in whichever event loop uses them.

It ends by itself once nothing is held, and gives back what is idle when its loop ends first.
"""

import asyncio
import contextlib
import logging
import threading
import time
import weakref
from functools import partial

from asgiref.sync import sync_to_async
from django.db import DatabaseError, close_old_connections

from evolution.limits.granting import Grant, Wish, grant_shares
from evolution.limits.holders import name_process
from evolution.limits.shared import NEVER, Reported, SharedPlaces

logger = logging.getLogger(__name__)

# Seconds before the database is asked again that did not answer: the first time, and at most.
FIRST_BACK_OFF = 0.1
MOST_BACK_OFF = 2.0


Kept = SharedPlaces | Reported


class Keeper:
    """Agrees on what is due; started by `poke`, which may be called often and from any thread with an event loop."""

    def __init__(self, holder: str = "") -> None:
        self.holder = holder or name_process()
        # What is held or wanted.
        self._kept: dict[str, Kept] = {}
        self._lock = threading.Lock()
        self._task: asyncio.Task[None] | None = None
        self._news: asyncio.Event | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # Loops that have calls, to take over from one that ends.
        self._loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()

    def poke(self, kept: Kept, *, is_urgent: bool) -> None:
        """Keep something, and look at once whether it is due if that is urgent.

        Outside event loops it is put off until somebody pokes in one.
        """
        try:
            here = asyncio.get_running_loop()
        except RuntimeError:
            here = None
        with self._lock:
            is_urgent = is_urgent or kept.name not in self._kept
            self._kept[kept.name] = kept
            if here is not None and here is not self._loop:
                self._loops.add(here)
            if not self._is_running():
                self._start(here)
            elif is_urgent:
                self._wake(here)

    def _is_running(self) -> bool:
        return self._loop is not None and not self._loop.is_closed() and self._loop.is_running()

    def _wake(self, here: asyncio.AbstractEventLoop | None) -> None:
        if self._loop is None or self._news is None:
            return
        if here is self._loop:
            self._news.set()
            return
        # It may close at this moment; then whoever waits pokes again when it looks by itself.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._news.set)

    def _start(self, loop: asyncio.AbstractEventLoop | None) -> None:
        if loop is None:
            return
        self._loop, self._news = loop, asyncio.Event()
        self._task = loop.create_task(self._keep(self._news), name="limits")

    async def _keep(self, news: asyncio.Event) -> None:
        back_off = 0.0
        try:
            while self._soonest() < NEVER:
                back_off = (
                    0.0 if await self._agree() else min(max(2 * back_off, FIRST_BACK_OFF), MOST_BACK_OFF)
                )
                await self._sleep(news, back_off)
        except asyncio.CancelledError:
            # Its loop ends; the calls of this loop end with it.
            await asyncio.sleep(0)
            await self._agree(everything=True)
            raise
        finally:
            self._hand_over()

    async def _sleep(self, news: asyncio.Event, back_off: float) -> None:
        if back_off:
            await asyncio.sleep(back_off)
            return
        # Whoever begins together asks together.
        await asyncio.sleep(0)
        while (soonest := self._soonest()) > 0 and soonest != NEVER:
            news.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(soonest):
                    await news.wait()

    def _soonest(self) -> float:
        """Seconds until something is due; what is neither held nor wanted any more is not kept."""
        with self._lock:
            dues = {name: kept.due_in() for name, kept in self._kept.items()}
            self._kept = {name: kept for name, kept in self._kept.items() if dues[name] < NEVER}
        return min(dues.values(), default=NEVER)

    async def _agree(self, *, everything: bool = False) -> bool:
        """Agree on everything when something is due, or anyway; False when the database did not answer.

        Who waits for a case of an evaluation waits for a call at its endpoint next.
        """
        due = list(self._kept.values())
        if not everything and all(kept.due_in() > 0 for kept in due):
            return True
        wishes = {kept.name: kept.wish(is_last=everything) for kept in due}
        if not wishes:
            return True
        asked_at = time.monotonic()
        try:
            grants = await sync_to_async(self._ask)(list(wishes.values()))
        # Whatever it is, those who wait must not wait for ever.
        except Exception as failure:
            logger.warning("limits could not be agreed on: %s", failure, exc_info=not _is_outage(failure))
            for kept in due:
                kept.fail(wishes[kept.name])
            return False
        for kept in due:
            kept.accept(wishes[kept.name], grants[kept.name], asked_at)
        return True

    def _ask(self, wishes: list[Wish]) -> dict[str, Grant]:
        try:
            return grant_shares(self.holder, wishes)
        except DatabaseError:
            close_old_connections()
            raise

    def _hand_over(self) -> None:
        """Let another loop go on that may have calls under way."""
        with self._lock:
            over, self._task, self._news, self._loop = self._loop, None, None, None
            others = [loop for loop in self._loops if loop is not over and loop.is_running()]
            kept = next(iter(self._kept.values()), None)
        if kept is not None and others:
            with contextlib.suppress(RuntimeError):
                others[0].call_soon_threadsafe(partial(self.poke, kept, is_urgent=True))


def _is_outage(failure: Exception) -> bool:
    return isinstance(failure, DatabaseError)
