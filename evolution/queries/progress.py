"""How far an evaluation is: done, rate, time left, errors by kind, what is under way now, and what ended it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.utils import timezone

from evolution.limits.shares import taken_by_all
from evolution.loop.evaluation import ACTIVE, is_standing_still, last_sign_of_life
from evolution.models import Evaluation
from evolution.queries.tallies import RECENT_SECONDS, Tally, tally_results


@dataclass(frozen=True)
class Progress:
    """How many (case, repeat) pairs of an evaluation are done, out of how many, and how many of them are errors."""

    done: int
    total: int
    errors: int
    is_running: bool
    # the most frequent first
    errors_by_kind: dict[str, int] = field(default_factory=dict)
    # results per second of late; None when there were none, or nothing runs
    per_second: float | None = None

    @property
    def measured(self) -> int:
        """The pairs that have scores."""
        return self.done - self.errors

    @property
    def unmeasured(self) -> int:
        """The pairs without scores: errors, what a budget cut off, and what was never reached."""
        return self.total - self.measured

    @property
    def measured_percent(self) -> int:
        """0-100; 100 for nothing but the whole."""
        return 100 * self.measured // self.total if self.total else 0

    @property
    def is_complete(self) -> bool:
        """Whether the scores are of everything that was to be measured."""
        return not self.is_running and self.done >= self.total

    @property
    def percent(self) -> int:
        """0-100; 100 for nothing but the whole."""
        return 100 * self.done // self.total if self.total else 0

    @property
    def error_percent(self) -> float:
        """The errors' part of the whole, 0-100."""
        return 100 * self.errors / self.total if self.total else 0.0

    @property
    def scored_percent(self) -> float:
        """The scores' part of the whole, 0-100."""
        return 100 * self.measured / self.total if self.total else 0.0

    @property
    def seconds_left(self) -> float | None:
        """At the rate of late; None without one."""
        return (self.total - self.done) / self.per_second if self.per_second else None


@dataclass(frozen=True)
class UnderWay:
    """What all workers have under way in an evaluation, as they said last."""

    cases: int
    calls: int


def measure_progress(evaluation: Evaluation) -> Progress:
    """How far an evaluation is, from the results that are stored."""
    return follow_tallies(evaluation, tally_results(evaluation), timezone.now())


def follow_tallies(evaluation: Evaluation, tallies: Sequence[Tally], now: datetime) -> Progress:
    """The same of tallies that are there already."""
    kinds: dict[str, int] = {}
    for tally in tallies:
        if tally.error_kind:
            kinds[tally.error_kind] = kinds.get(tally.error_kind, 0) + tally.results
    is_running = evaluation.state in ACTIVE
    recent = sum(tally.recent for tally in tallies)
    return Progress(
        done=sum(tally.results for tally in tallies),
        total=evaluation.total,
        errors=sum(kinds.values()),
        is_running=is_running,
        errors_by_kind=dict(sorted(kinds.items(), key=lambda item: (-item[1], item[0]))),
        per_second=recent / _window(evaluation, now) if is_running and recent else None,
    )


def _window(evaluation: Evaluation, now: datetime) -> float:
    """How many seconds the recent results took: since the start or the last resumption, when that is not long ago.

    A pause is not counted, and neither are the results from before it.
    """
    began = max((moment for moment in (evaluation.started_at, evaluation.queued_at) if moment), default=now)
    since = now - began
    return min(max(since, timedelta(seconds=1)).total_seconds(), RECENT_SECONDS)


def count_under_way(evaluation: Evaluation) -> UnderWay:
    """What is under way over all processes; nothing when nobody works on it."""
    name = f"evaluation:{evaluation.pk}"
    return UnderWay(cases=taken_by_all(f"{name}:cases"), calls=taken_by_all(f"{name}:calls"))


def stands_still_since(evaluation: Evaluation, now: datetime) -> datetime | None:
    """When somebody last worked on an evaluation that is to be worked on; None while somebody does."""
    if not is_standing_still(evaluation, now):
        return None
    return last_sign_of_life(evaluation)
