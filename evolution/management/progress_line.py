"""The progress of an evaluation on one line of a terminal: a bar, rate, time left and errors."""

import time
from collections import deque
from collections.abc import Callable

from django.core.management.base import OutputWrapper

from evolution.durations import say_seconds

BAR = 24
# Seconds between two writes, for which errors are counted, and of the results that the rate is taken from.
PAUSE = 0.2
WINDOW = 20.0


class ProgressLine:
    """Called with (done, total) as results are stored; writes over itself, and ends its line at the end.

    `count_errors` is asked when the line is written, and `clock` tells the seconds.
    """

    def __init__(
        self,
        out: OutputWrapper,
        count_errors: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.out = out
        self.count_errors = count_errors
        self.clock = clock
        self.seen: deque[tuple[float, int]] = deque()
        self.written_at = -PAUSE
        self.width = 0

    def __call__(self, done: int, total: int) -> None:
        """Note how far it is, and say it if the last time is long enough ago."""
        now = self.clock()
        self.seen.append((now, done))
        while now - self.seen[0][0] > WINDOW:
            self.seen.popleft()
        if done < total and now - self.written_at < PAUSE:
            return
        self.written_at = now
        line = format_progress(done, total, self._rate(now, done), self.count_errors())
        # As it is: standard error is red otherwise.
        self.out.write("\r" + line.ljust(self.width), style_func=str, ending="")
        self.out.flush()
        self.width = len(line)

    def _rate(self, now: float, done: int) -> float:
        """Results per second of late; 0 when it can't be told."""
        began, before = self.seen[0]
        return (done - before) / (now - began) if now > began else 0.0

    def end(self) -> None:
        """Leave the line as it is and go on below it."""
        if self.width:
            self.out.write("", style_func=str)
            self.width = 0


def format_progress(done: int, total: int, rate: float, errors: int) -> str:
    """Such as "[#####...] 50/80  62 %  4.0/s  8 s left  2 errors"."""
    filled = BAR * done // total if total else BAR
    parts = [f"[{'#' * filled}{'.' * (BAR - filled)}] {done}/{total}", f"{100 * done // max(total, 1)} %"]
    if rate > 0:
        parts.append(f"{rate:.1f}/s")
    if rate > 0 and done < total:
        parts.append(f"{say_seconds((total - done) / rate)} left")
    if errors:
        parts.append(f"{errors} error{'' if errors == 1 else 's'}")
    return "  ".join(parts)
