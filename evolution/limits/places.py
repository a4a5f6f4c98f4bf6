"""How many calls this process has under way at an endpoint, and who waits for one to end."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, Protocol


class Waiting(Protocol):
    """Somebody who waits for a place, or for an endpoint to take calls again."""

    def wake(self) -> bool:
        """Say that there may be one; False when somebody else has said so already."""


class Place(NamedTuple):
    """A place in line."""

    waiting: Waiting
    cost: int


class Places:
    """The calls that an endpoint may have at once, first come, first served; safe to use from several threads.

    A place that is given back is promised to the first who waits, so that nobody who comes later overtakes. `cost`
    is what a call will use of a limit on tokens, as far as one can tell; nothing comes of it where there is none.
    """

    # Whether calls have to say what they will use.
    counts_tokens = False
    # Whether what a call sends is limited per minute.
    has_rates = False

    def __init__(self, limit: int = 0, *, clock: Callable[[], float] = time.monotonic) -> None:
        # 0 is no limit
        self.limit = limit
        self.in_flight = 0
        self.last_taken = 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._line: deque[Place] = deque()
        self._watching: list[Waiting] = []
        self._promised: dict[Waiting, int] = {}

    def is_full(self) -> bool:
        """Whether as many calls are under way, or promised to others, as may be."""
        return not self._has_room(0)

    def take(self, waiting: Waiting | None = None, cost: int = 0) -> bool:
        """Take a place, the promised one if there is a promise; False when there is none."""
        with self._lock:
            if waiting is None or self._promised.pop(waiting, None) is None:
                if self._line_comes_first() or not self._has_room(cost):
                    return False
                self._spend(cost)
            self.in_flight += 1
            self.last_taken = self._clock()
            return True

    def give_back(self) -> None:
        """Give a place back; the first in turn is promised it, and woken."""
        with self._lock:
            self.in_flight -= 1
            self._promise()

    def hold(self) -> None:
        """Take a place that there is none of; only to give it back at once."""
        with self._lock:
            self.in_flight += 1

    def queue(self, waiting: Waiting, cost: int = 0) -> None:
        """Put somebody in the line for places."""
        with self._lock:
            self._line_up(waiting, cost)

    def watch(self, waiting: Waiting) -> None:
        """Wake somebody when `wake_all` says so, and not for a place."""
        with self._lock:
            self._watching.append(waiting)

    def leave(self, waiting: Waiting) -> None:
        """Forget somebody who waited; a promise that was not made use of goes to the next in line."""
        with self._lock:
            self._line = deque(place for place in self._line if place.waiting is not waiting)
            if waiting in self._watching:
                self._watching.remove(waiting)
            cost = self._promised.pop(waiting, None)
            if cost is not None:
                self._spend(-cost, calls=-1)
                self._promise()

    def wake_all(self) -> None:
        """Wake everybody: what they wait for has changed."""
        with self._lock:
            waiters = [*(place.waiting for place in self._line), *self._watching]
            self._line.clear()
            self._watching.clear()
        for waiting in waiters:
            waiting.wake()

    def settle(self, cost: int, used: int) -> None:
        """Say what a call has used in the end of which `cost` had been said."""

    def _has_room(self, cost: int) -> bool:  # noqa: ARG002  of those that count it
        return not self.limit or self._busy() < self.limit

    def _line_comes_first(self) -> bool:
        """Whether nobody new may take a place although there is one: who waits needs more than it."""
        return False

    def _spend(self, cost: int, calls: int = 1) -> None:
        """Take note of what a place was taken or promised for."""

    def _line_up(self, waiting: Waiting, cost: int) -> None:
        self._line.append(Place(waiting, cost))

    def _busy(self) -> int:
        return self.in_flight + len(self._promised)

    def _promise(self) -> None:
        while self._line and self._has_room(self._line[0].cost):
            first = self._line.popleft()
            if first.waiting.wake():
                self._promised[first.waiting] = first.cost
                self._spend(first.cost)
