"""This process's side of a limit that all processes keep together: places up to its share, permits up to its draw.

Knows when its share should be agreed on anew; `keeping` does that, and nothing here touches the database.
"""

import time
from collections.abc import Callable
from typing import Protocol

from evolution.limits.granting import LEASE_SECONDS, Grant, Wish
from evolution.limits.places import Places, Waiting
from evolution.limits.rates import PERMIT_SECONDS, Permits, Rates

# Seconds between two agreements: at least; where a share is waited for that others are to give back, at first, and
# at most; with calls in line; with calls under way; before all is given back.
SHORTEST = 0.02
LONGEST_CHASE = 0.06
IN_LINE = 0.15
UNDER_WAY = 0.25
IDLE = 0.3
# Seconds in which a process wants what it has wanted at most in them: between two calls of a case is no idleness.
WANTED_FOR = 0.05
# Seconds by which a lease is over earlier here than there.
MARGIN = 2.0
NEVER = float("inf")


class Poke(Protocol):
    """Whoever keeps what is shared agreed on."""

    def __call__(self, kept: "SharedPlaces | Reported", *, is_urgent: bool) -> None:
        """Go on keeping it; `is_urgent` says that it may be due sooner than it was."""


class SharedPlaces(Places):
    """Places of a limit that all processes keep; none before a share has been agreed on, or once its lease is over."""

    def __init__(self, name: str, poke: Poke, *, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock=clock)
        self.name = name
        self._poke = poke
        self._permits = Permits(Rates(), clock)
        self._grant = Grant()
        self._until = 0.0
        self._agreed_at = -NEVER
        self._chase = SHORTEST
        self._longest = 0.0
        # The most that was wanted of late, and before that.
        self._peak = self._last_peak = 0
        self._peak_since = 0.0

    def configure(self, limit: int, rates: Rates, longest: float = 0.0) -> None:
        """Take a limit as it stands in the settings now; no call takes longer than so many seconds."""
        with self._lock:
            self._longest = longest
            if (limit, rates) == (self.limit, self._permits.rates):
                return
            self.limit, self.counts_tokens, self.has_rates = limit, bool(rates.tokens), bool(rates)
            self._permits = Permits(rates, self._clock)
            self._agreed_at = -NEVER
            self._promise()

    @property
    def share(self) -> int:
        """How many this process may have under way now; with a limit of 0 as many as it likes."""
        with self._lock:
            return self._share()

    def is_full(self) -> bool:
        """Whether nobody new may take a place."""
        with self._lock:
            return self._line_comes_first() or not self._has_room(0)

    def take(self, waiting: Waiting | None = None, cost: int = 0) -> bool:
        """Take a place, the promised one if there is a promise; False when there is none."""
        is_taken = super().take(waiting, cost)
        self._note()
        return is_taken

    def give_back(self) -> None:
        """Give a place back: to the first in turn, or to others when it is theirs by rights."""
        super().give_back()
        if self._grant.granted > self._grant.share:
            self._poke(self, is_urgent=True)

    def queue(self, waiting: Waiting, cost: int = 0) -> None:
        """Put somebody in the line for places."""
        with self._lock:
            self._line_up(waiting, cost)
            self._promise()
        self._note()

    def settle(self, cost: int, used: int) -> None:
        """Say what a call has used in the end of which `cost` had been said."""
        if self.counts_tokens:
            with self._lock:
                self._permits.settle(cost - used)

    def wish(self, *, is_last: bool = False) -> Wish:
        """What to ask for now; to be followed by `accept` or `fail`. The last wish is for no more than what is taken.

        While it is asked calls may take places as before, unless there are none: then all is given back.
        """
        with self._lock:
            self._count_peak()
            busy = self._busy()
            wanted = busy if is_last else max(self._peak, self._last_peak)
            if is_last or not wanted:
                self._until = 0.0
            if self.limit:
                wanted = min(wanted, max(self.limit, busy))
            asked = (
                self._permits.ask([place.cost for place in self._line]) if wanted else self._permits.release()
            )
            held = max(self._share(), busy)
            return Wish(self.name, self.limit, wanted, busy, held, self._permits.rates, asked, self._longest)

    def accept(self, wish: Wish, grant: Grant, asked_at: float) -> None:
        """Take what was agreed on when asked at a moment of our clock; who waits for it is woken."""
        with self._lock:
            has_changed = (grant.share, grant.granted) != (self._grant.share, self._grant.granted)
            self._chase = SHORTEST if has_changed else min(self._chase * 2, LONGEST_CHASE)
            self._grant, self._agreed_at = grant, self._clock()
            self._until = 0.0 if wish.is_over else asked_at + LEASE_SECONDS - MARGIN
            self._permits.accept(grant.requests, grant.tokens, asked_at + PERMIT_SECONDS)
            self._promise()

    def fail(self, wish: Wish) -> None:
        """There was no agreement: the last one holds as long as its lease does."""
        with self._lock:
            self._permits.keep(wish.draw)

    def due_in(self) -> float:
        """Seconds until the share should be agreed on anew; `NEVER` when nothing of it is held or wanted."""
        with self._lock:
            now = self._clock()
            self._count_peak()
            interval = self._interval(now)
            return NEVER if interval == NEVER else max(self._agreed_at + interval - now, 0.0)

    def _interval(self, now: float) -> float:
        busy, in_line = self._busy(), len(self._line)
        if not self._is_bound() and not self._until:
            return NEVER
        if not busy and not in_line:
            is_held = self._until or not self._permits.are_out()
            return IDLE if is_held else NEVER
        if now >= self._until:
            return SHORTEST
        return min(self._interval_of_share(busy, in_line), self._interval_of_permits(in_line))

    def _interval_of_share(self, busy: int, in_line: int) -> float:
        grant = self._grant
        if not self.limit:
            return UNDER_WAY
        gives_back = busy < grant.granted and (
            grant.granted > grant.share
            or (grant.is_scarce and max(self._peak, self._last_peak) < grant.share)
        )
        # More than was asked for, and nobody else wants it.
        takes_more = in_line and busy >= grant.share and not grant.is_scarce and grant.share < self.limit
        if gives_back or takes_more or (in_line and grant.is_behind):
            return self._chase
        return IN_LINE if in_line else UNDER_WAY

    def _interval_of_permits(self, in_line: int) -> float:
        if not self._permits.are_low():
            return UNDER_WAY
        return SHORTEST * 2 if in_line else IN_LINE

    def _has_room(self, cost: int) -> bool:
        if not self._is_bound():
            return True
        if self._clock() >= self._until or not self._permits.allow(cost):
            return False
        return not self.limit or self._busy() < self._grant.share

    def _is_bound(self) -> bool:
        return bool(self.limit or self._permits.rates)

    def _share(self) -> int:
        return self._grant.share if self._clock() < self._until else 0

    def _line_comes_first(self) -> bool:
        return bool(self._line)

    def _spend(self, cost: int, calls: int = 1) -> None:
        self._permits.spend(cost, calls)

    def _note(self) -> None:
        """Count what is wanted, and have the share kept; agreed on anew where it is not enough."""
        if self._is_bound():
            with self._lock:
                self._count_peak()
            self._poke(self, is_urgent=bool(self._line) or not self._until)

    def _count_peak(self) -> None:
        now, wanted = self._clock(), self._busy() + len(self._line)
        if now - self._peak_since > WANTED_FOR:
            is_old = now - self._peak_since > 2 * WANTED_FOR
            self._last_peak = wanted if is_old else self._peak
            self._peak, self._peak_since = wanted, now
        self._peak = max(self._peak, wanted)


class Reported:
    """Something that nothing limits: other processes are only told how much of it this one has under way."""

    def __init__(self, name: str, poke: Poke, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.name = name
        self._poke = poke
        self._clock = clock
        self._taken = self._told = 0
        self._told_at = -NEVER

    def report(self, taken: int) -> None:
        """Have others told in a while."""
        is_new = not self._taken and not self._told
        self._taken = taken
        if taken:
            self._poke(self, is_urgent=is_new)

    def wish(self, *, is_last: bool = False) -> Wish:  # noqa: ARG002  it wants nothing
        """What to tell."""
        return Wish(self.name, 0, taken=self._taken)

    def accept(self, wish: Wish, grant: Grant, asked_at: float) -> None:  # noqa: ARG002  nothing is granted
        """It was told."""
        self._told, self._told_at = wish.taken, self._clock()

    def fail(self, wish: Wish) -> None:
        """It was not told; it will be."""

    def due_in(self) -> float:
        """Seconds until it should be told again."""
        if not self._taken and not self._told:
            return NEVER
        return max(self._told_at + UNDER_WAY - self._clock(), 0.0)
