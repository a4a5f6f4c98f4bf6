"""Limits per minute: a bucket that all processes draw from, and the permits that this one has drawn.

Whatever is drawn is used within `PERMIT_SECONDS` or given back. What can be used in any 60 s was therefore drawn
within 61 s: at most what the bucket held, and 61 times what flows in per second. `flow` is chosen such that this is
the limit, also where a single call takes more than the bucket holds and leaves it in debt.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

PERMIT_SECONDS = 1.0
_WINDOW = 60.0 + PERMIT_SECONDS
# Seconds of the flow that are drawn ahead of calls.
_AHEAD = 0.1


@dataclass(frozen=True)
class Rates:
    """Limits per minute; 0 is none."""

    requests: int = 0
    tokens: int = 0

    def __bool__(self) -> bool:
        return bool(self.requests or self.tokens)


@dataclass(frozen=True)
class Draw:
    """What a process would take out of the buckets."""

    requests: int = 0
    tokens: float = 0.0
    # Of the tokens, what the first call in line needs, and the most that a call has needed.
    first: int = 0
    largest: int = 0
    # What goes back into them first: permits that nobody used, and less or more than was said before.
    unused_requests: int = 0
    unused_tokens: float = 0.0


@dataclass(frozen=True)
class Buckets:
    """What is left in the buckets."""

    requests: float = 0.0
    tokens: float = 0.0


def burst(per_minute: int) -> float:
    """What a bucket holds: about a second's worth, and one call at least."""
    return max(1.0, per_minute / (_WINDOW + 1))


def flow(per_minute: int, largest: int = 0) -> float:
    """What flows into a bucket per second, for calls that take up to `largest` at once."""
    if largest <= burst(per_minute):
        return per_minute / (_WINDOW + 1)
    # Calls beyond half the limit: the rest has to flow in some time.
    return max(per_minute - largest, per_minute / 2) / _WINDOW


def draw(rates: Rates, left: Buckets, seconds: float, asked: Draw) -> tuple[Buckets, int, float]:
    """What is left after `seconds` more and the draw, and the requests and tokens that it brings."""
    requests = _filled(left.requests + asked.unused_requests, rates.requests, seconds)
    tokens = _filled(left.tokens + asked.unused_tokens, rates.tokens, seconds, asked.largest)
    drawn = min(asked.requests, max(int(requests), 0)) if rates.requests else 0
    drawn_tokens = 0.0
    if rates.tokens and tokens >= min(max(asked.first, 1), burst(rates.tokens)):
        drawn_tokens = max(float(asked.first), min(asked.tokens, tokens))
    return Buckets(requests - drawn, tokens - drawn_tokens), drawn, drawn_tokens


def _filled(left: float, per_minute: int, seconds: float, largest: int = 0) -> float:
    return min(left + flow(per_minute, largest) * max(seconds, 0.0), burst(per_minute))


class Permits:
    """The requests and tokens that this process has drawn and not used yet; its owner locks."""

    def __init__(self, rates: Rates, clock: Callable[[], float] = time.monotonic) -> None:
        self.rates = rates
        self._clock = clock
        self._requests = 0
        self._tokens = 0.0
        self._until = 0.0
        self._largest = 0
        # To be put into the buckets with the next draw.
        self._back = Buckets()

    def allow(self, cost: int) -> bool:
        """Whether they are enough for a call."""
        if not self.rates:
            return True
        is_enough = not self.rates.requests or self._requests > 0
        return is_enough and (not self.rates.tokens or self._tokens >= cost) and self._clock() < self._until

    def spend(self, cost: int, calls: int = 1) -> None:
        """Use them for a call; a negative one is taken back."""
        self._requests -= calls
        self._tokens -= cost
        self._largest = max(self._largest, cost)

    def settle(self, difference: float) -> None:
        """Tokens that calls used less than they said, or more, which is negative."""
        self._back = Buckets(self._back.requests, self._back.tokens + difference)

    def are_low(self) -> bool:
        """Whether the next call would have to wait for a draw."""
        return bool(self.rates) and not self.allow(1)

    def are_out(self) -> bool:
        """Whether nothing waits to be put back into the buckets."""
        return not self.rates or (self._back == Buckets() and not self._requests and not self._tokens)

    def ask(self, costs: list[int]) -> Draw:
        """What to draw for the calls in line; what is left is given back with it."""
        back = Buckets(self._back.requests + self._requests, self._back.tokens + self._tokens)
        self._requests, self._tokens, self._back = 0, 0.0, Buckets()
        return Draw(
            requests=len(costs) + max(1, int(flow(self.rates.requests) * _AHEAD)),
            tokens=sum(costs) + flow(self.rates.tokens, self._largest) * _AHEAD,
            first=costs[0] if costs else 0,
            largest=self._largest,
            unused_requests=int(back.requests),
            unused_tokens=back.tokens,
        )

    def release(self) -> Draw:
        """Nothing, for nobody calls any more; what is left is given back."""
        asked = self.ask([])
        return Draw(unused_requests=asked.unused_requests, unused_tokens=asked.unused_tokens)

    def accept(self, requests: int, tokens: float, until: float) -> None:
        """Take what was drawn; it has to be used by then."""
        # Calls that had a promise may have begun in the meantime.
        self._requests += requests
        self._tokens += tokens
        self._until = until

    def keep(self, asked: Draw) -> None:
        """A draw came to nothing: what was to go back goes back with the next one."""
        back = self._back
        self._back = Buckets(back.requests + asked.unused_requests, back.tokens + asked.unused_tokens)
