"""Inside an evaluation: a batch is worked on in this process until it has ended, with one engine after the other."""

import time
from collections.abc import Callable, Collection, Sequence
from time import monotonic

from evolution.loop.engine import BuildScorer, Engine, never
from evolution.loop.evaluation import ACTIVE, finish_evaluation
from evolution.loop.shards import give_up_failing, give_up_start
from evolution.models import Evaluation

# How often in a row an evaluation may fail to be started before that is its end, where nobody else works on it.
MOST_FAILED_STARTS = 5
# Seconds between two tries of a process that finds nothing to do, and between two reports to people.
PAUSE = 0.5


def work_batch(
    evaluations: Sequence[Evaluation],
    build: BuildScorer,
    on_progress: Callable[[], None] | None = None,
    is_stopping: Callable[[], bool] = never,
) -> None:
    """Work on evaluations here until all of them have ended, beside any workers that do the same.

    `on_progress` is called now and then while results are stored, and at the end. Once `is_stopping`, what is under
    way is cut off, and what is left is left to others.
    """
    failed_starts = 0
    on_stored = _now_and_then(on_progress) if on_progress else None
    while left := [one for one in evaluations if not finish_evaluation(one) and one.state in ACTIVE]:
        engine = Engine(left, build, on_stored=on_stored, is_stopping=is_stopping)
        engine.work()
        if is_stopping():
            break
        failed_starts = failed_starts + 1 if engine.obstacles else 0
        if failed_starts > MOST_FAILED_STARTS:
            give_up_starts(left, engine)
        elif engine.obstacles or not engine.has_worked:
            # Others hold what is left, or may be able to take it; their leases end when they die.
            give_up_failing()
            time.sleep(PAUSE)
            if on_stored:
                on_stored()
    if on_progress:
        on_progress()


def give_up_starts(evaluations: Collection[Evaluation], engine: Engine) -> None:
    """End with errors those that an engine could not start, and that nobody else works on."""
    for one in evaluations:
        if one.pk in engine.obstacles:
            give_up_start(one, engine.obstacles[one.pk])


def _now_and_then(report: Callable[[], None]) -> Callable[[], None]:
    """The same, but not more often than a person reads."""
    last = float("-inf")

    def maybe_report() -> None:
        nonlocal last
        if monotonic() - last >= PAUSE:
            last = monotonic()
            report()

    return maybe_report
