"""What this process knows of a model at an endpoint: how the last calls ended, and whether to leave it alone.

A server that asks to wait is paused, unless it asks that of few calls among many. One that fails too often is isolated
for a while; then a single call tries it, and opens it again or isolates it for twice as long. Nothing here waits or
calls; `routing` does.
"""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from evolution.limits.places import Places, Waiting
from harness_repo.runtime.chat import ChatError

logger = logging.getLogger(__name__)

# The longest pause that a server may ask for; what asks for more is not believed.
LONGEST_PAUSE = 3600.0
# Of the last so many calls a server may turn away so few, and each for so many seconds, without a pause for all: a
# gateway has a bad moment, or our calls come a little too fast, and those that were turned away wait by themselves.
RECENT_CALLS = 20
FEW_TURNED_AWAY = 2
ENOUGH_OTHERS = 10
SHORT_WAIT = 10.0
# Of a kind that says nothing about how the server is: it answered, and did not like what it was asked.
_ALIVE = frozenset({"refused", "configuration"})


@dataclass(frozen=True)
class HealthRules:
    """When an endpoint is left alone, and for how long; seconds and a share of calls."""

    # Calls that ended longer ago are forgotten.
    window: float = 60.0
    # Fewer calls say nothing.
    fewest_calls: int = 5
    # A larger share of failures isolates.
    error_rate: float = 0.5
    # Of isolation; doubled by each trial that fails.
    cool_down: float = 5.0
    most_cool_down: float = 300.0
    # After a 429 that names no time; doubled by each one that follows.
    pause: float = 0.5
    most_pause: float = 30.0


@dataclass(frozen=True)
class Ticket:
    """The right to make one call now; whoever holds it gives it back with `finish` or `abandon`."""

    started: float
    is_trial: bool = False
    # Of tokens, as far as one could tell; 0 where nobody counts them.
    cost: int = 0


class Health:
    """The health of a model at an endpoint, as this process sees it; safe to use from several threads.

    A gateway may have one model that is down and another that is not, so each has its own; the places they share.
    """

    def __init__(
        self,
        label: str,
        places: Places | None = None,
        *,
        rules: HealthRules | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.label = label
        self.places = places or Places(clock=clock)
        self.last_failure: ChatError | None = None
        self.isolated_at: float | None = None
        self._rules = rules or HealthRules()
        self._clock = clock
        self._lock = threading.Lock()
        self._ends: deque[tuple[float, bool]] = deque()
        # Of the last calls, whether they were turned away.
        self._turned_away: deque[bool] = deque(maxlen=RECENT_CALLS)
        self._avoided_until = 0.0
        self._paused_at = self._paused_until = 0.0
        self._pauses = 0
        self._cool_down_from = 0.0
        self._cool_down = self._rules.cool_down
        self._on_trial = False

    def try_start(self, *, alone: bool, waiting: Waiting | None = None, cost: int = 0) -> Ticket | None:
        """A ticket for a call now, or None.

        `alone` says that all others of the role are isolated too; `waiting` is who may have been promised a place.
        """
        with self._lock:
            if self._seconds_left(alone=alone) > 0 or not self.places.take(waiting, cost):
                return None
            self._on_trial = self.isolated_at is not None
            return Ticket(self._clock(), self._on_trial, cost)

    def finish(self, ticket: Ticket, failure: ChatError | None) -> None:
        """Note how the ticket's call ended; None for a reply."""
        with self._lock:
            self._end_trial(ticket)
            is_news = self._note(ticket, failure) or ticket.is_trial
        self._give_back(is_news=is_news)

    def abandon(self, ticket: Ticket) -> None:
        """Give the ticket back of a call that was cancelled: it says nothing about the server."""
        with self._lock:
            self._end_trial(ticket)
        self._give_back(is_news=ticket.is_trial)

    def seconds_left(self, *, alone: bool) -> float:
        """How long it is left alone from now on: 0 when calls may go there, inf while its trial is under way."""
        with self._lock:
            return self._seconds_left(alone=alone)

    def error_rate(self) -> float:
        """The share of failures among the calls of the window, 0-1; 0 when there were none."""
        with self._lock:
            self._forget()
            return self._failures() / len(self._ends) if self._ends else 0.0

    def calls(self) -> int:
        """How many calls ended within the window."""
        with self._lock:
            self._forget()
            return len(self._ends)

    def state(self) -> str:
        """How it is: serving, paused (it asked to wait), isolated, or trial (a single call finds out how it is)."""
        if self._on_trial:
            return "trial"
        if self.isolated_at is not None:
            return "isolated"
        return "paused" if self._paused_until > self._clock() else "serving"

    def is_avoided(self) -> bool:
        """Whether others come first for a while: it said that it has no such model, or that we may not use it."""
        return self._avoided_until > self._clock()

    def _end_trial(self, ticket: Ticket) -> None:
        if ticket.is_trial:
            self._on_trial = False

    def _give_back(self, *, is_news: bool) -> None:
        # First the news: a place is not to be promised to somebody who may no longer want it.
        if is_news:
            self.places.wake_all()
        self.places.give_back()

    def _seconds_left(self, *, alone: bool) -> float:
        now = self._clock()
        if self._on_trial:
            return float("inf")
        left = self._paused_until - now
        if self.isolated_at is not None:
            # With nobody else to answer, looking more often costs nothing but these calls.
            rest = min(self._cool_down, self._rules.cool_down) if alone else self._cool_down
            left = max(left, self._cool_down_from + rest - now)
        return max(left, 0.0)

    def _note(self, ticket: Ticket, failure: ChatError | None) -> bool:
        """Take an end into account; True when the state may have changed for those who wait."""
        if failure is None or failure.kind in _ALIVE:
            return self._note_answer(ticket, failure)
        self.last_failure = failure
        is_turned_away = failure.kind == "rate_limit"
        is_asked_to_wait = is_turned_away or failure.retry_after is not None
        is_paused = is_asked_to_wait and not self._is_lone(failure) and self._pause(ticket, failure)
        # Too many requests are no failure of the server's: it is up.
        return (self._open(ticket) if is_turned_away else self._note_failure(ticket)) or is_paused

    def _note_answer(self, ticket: Ticket, failure: ChatError | None) -> bool:
        if failure is not None and failure.kind == "configuration":
            self._avoided_until = self._clock() + self._rules.window
        was_isolated = self._open(ticket)
        self._turned_away.append(False)
        if self.isolated_at is None:
            self._pauses = 0
            self._ends.append((self._clock(), True))
        return was_isolated

    def _open(self, ticket: Ticket) -> bool:
        """End the isolation by a call that was begun during it."""
        if self.isolated_at is None or not ticket.is_trial:
            return False
        logger.info("endpoint %s answers again", self.label)
        self.isolated_at = None
        self._cool_down = self._rules.cool_down
        self._ends.clear()
        return True

    def _note_failure(self, ticket: Ticket) -> bool:
        now = self._clock()
        if self.isolated_at is not None:
            if ticket.is_trial:
                self._cool_down_from = now
                self._cool_down = min(self._cool_down * 2, self._rules.most_cool_down)
                logger.warning("endpoint %s still fails: %s", self.label, self.last_failure)
            return ticket.is_trial
        self._ends.append((now, False))
        self._forget()
        if len(self._ends) < self._rules.fewest_calls:
            return False
        if self._failures() <= self._rules.error_rate * len(self._ends):
            return False
        self.isolated_at = self._cool_down_from = now
        values = self.label, self._cool_down, self._failures(), len(self._ends), self.last_failure
        logger.warning("endpoint %s isolated for %.1f s: %d of %d calls failed, the last: %s", *values)
        return True

    def _is_lone(self, failure: ChatError) -> bool:
        """Whether a call that was turned away is one of few among many that were not; counts it.

        Calls under way count too: a server turns away at once, and answers when it has thought.
        """
        self._turned_away.append(True)
        turned_away = sum(self._turned_away)
        is_short = (failure.retry_after or 0.0) <= SHORT_WAIT
        others = len(self._turned_away) - turned_away + self.places.in_flight - 1
        return is_short and turned_away <= FEW_TURNED_AWAY and others >= ENOUGH_OTHERS

    def _pause(self, ticket: Ticket, failure: ChatError) -> bool:
        """Leave it alone for as long as it asks, or for longer each time; False when it is paused longer anyway."""
        now, seconds = self._clock(), failure.retry_after
        # A mistake, such as the time of day: as if nothing had been asked.
        if seconds is not None and not 0 <= seconds <= LONGEST_PAUSE:
            seconds = None
        # Of calls that were under way together, only the first makes the pause longer.
        if seconds is None and ticket.started >= self._paused_at:
            seconds = min(self._rules.pause * 2**self._pauses, self._rules.most_pause)
            self._pauses += 1
        until = now + (seconds or 0.0)
        if until <= max(self._paused_until, now):
            return False
        self._paused_at, self._paused_until = now, until
        logger.info("endpoint %s paused for %.1f s: %s", self.label, until - now, failure)
        return True

    def _failures(self) -> int:
        return sum(not is_good for _, is_good in self._ends)

    def _forget(self) -> None:
        oldest = self._clock() - self._rules.window
        while self._ends and self._ends[0][0] < oldest:
            self._ends.popleft()
