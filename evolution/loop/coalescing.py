"""Many small questions of one event loop, asked as few large ones."""

import asyncio
import math
import time
from collections.abc import Callable, Collection, Mapping
from typing import Generic, TypeVar

from evolution.loop.patience import patiently

MOST_AT_ONCE = 500
# From the beginning of one question to that of the next: many together cost a fraction of what they cost one by one.
SECONDS_BETWEEN = 0.005

Key = TypeVar("Key")
Value = TypeVar("Value")


class Coalesced(Generic[Key, Value]):
    """Asks the database for what its coroutines want: all that came up since the last question goes into the next.

    The first one is asked at once; while there are many, they wait some milliseconds for each other.
    """

    def __init__(self, ask: Callable[[Collection[Key]], Mapping[Key, Value]]) -> None:
        self._ask = ask
        self._wanted: dict[Key, asyncio.Future[Value | None]] = {}
        self._asking: asyncio.Task[None] | None = None
        self._last = -math.inf

    async def get(self, key: Key) -> Value | None:
        """The key's value, None when it has none; raises what asking raises."""
        future = self._wanted.get(key)
        if future is None:
            future = self._wanted[key] = asyncio.get_running_loop().create_future()
        if self._asking is None:
            self._asking = asyncio.create_task(self._work())
        # Others may wait for the same; one that is cancelled leaves it to them.
        return await asyncio.shield(future)

    async def _work(self) -> None:
        try:
            while self._wanted:
                # At least, whoever is ready at this moment comes along.
                await asyncio.sleep(max(self._last + SECONDS_BETWEEN - time.monotonic(), 0))
                self._last = time.monotonic()
                batch = dict(list(self._wanted.items())[:MOST_AT_ONCE])
                for key in batch:
                    del self._wanted[key]
                await self._answer(batch)
        finally:
            self._asking = None

    async def _answer(self, batch: Mapping[Key, "asyncio.Future[Value | None]"]) -> None:
        try:
            found = await patiently(self._ask, list(batch))
        except BaseException as failure:
            for future in batch.values():
                _fail(future, failure)
            if not isinstance(failure, Exception):
                raise
            return
        for key, future in batch.items():
            if not future.done():
                future.set_result(found.get(key))


def _fail(future: "asyncio.Future[Value | None]", failure: BaseException) -> None:
    if future.done():
        return
    if isinstance(failure, Exception):
        future.set_exception(failure)
    else:
        future.cancel()
