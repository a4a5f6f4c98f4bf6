"""How many calls this process has under way at an endpoint, and who waits for one to end."""

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol


class Waiting(Protocol):
    """Somebody who waits for a place, or for an endpoint to take calls again."""

    def wake(self) -> bool:
        """Say that there may be one; False when somebody else has said so already."""


class Places:
    """The calls that an endpoint may have at once, first come, first served; safe to use from several threads.

    A place that is given back is promised to the first who waits, so that nobody who comes later overtakes.
    """

    def __init__(self, limit: int = 0, *, clock: Callable[[], float] = time.monotonic) -> None:
        # 0 is no limit
        self.limit = limit
        self.in_flight = 0
        self.last_taken = 0.0
        self._clock = clock
        self._lock = threading.Lock()
        self._line: deque[Waiting] = deque()
        self._watching: list[Waiting] = []
        self._promised: list[Waiting] = []

    def is_full(self) -> bool:
        """Whether as many calls are under way, or promised to others, as may be."""
        return bool(self.limit) and self.in_flight + len(self._promised) >= self.limit

    def take(self, waiting: Waiting | None = None) -> bool:
        """Take a place, the promised one if there is a promise; False when there is none."""
        with self._lock:
            if waiting is not None and waiting in self._promised:
                self._promised.remove(waiting)
            elif self.is_full():
                return False
            self.in_flight += 1
            self.last_taken = self._clock()
            return True

    def give_back(self) -> None:
        """Give a place back; the first in turn is promised it, and woken."""
        with self._lock:
            self.in_flight -= 1
            self._promise()

    def queue(self, waiting: Waiting) -> None:
        """Put somebody at the end of the line for places."""
        with self._lock:
            self._line.append(waiting)

    def watch(self, waiting: Waiting) -> None:
        """Wake somebody when `wake_all` says so, and not for a place."""
        with self._lock:
            self._watching.append(waiting)

    def leave(self, waiting: Waiting) -> None:
        """Forget somebody who waited; a promise that was not made use of goes to the next in line."""
        with self._lock:
            for waiters in (self._line, self._watching):
                if waiting in waiters:
                    waiters.remove(waiting)
            if waiting in self._promised:
                self._promised.remove(waiting)
                self._promise()

    def wake_all(self) -> None:
        """Wake everybody: what they wait for has changed."""
        with self._lock:
            waiters = [*self._line, *self._watching]
            self._line.clear()
            self._watching.clear()
        for waiting in waiters:
            waiting.wake()

    def _promise(self) -> None:
        while self._line and not self.is_full():
            waiting = self._line.popleft()
            if waiting.wake():
                self._promised.append(waiting)
                return
