"""Works on an evaluation in the command's own process until it has ended, and shows how far it is."""

import json
import sys
from collections.abc import Callable
from typing import Any

from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from evolution.errors import LoopError
from evolution.loop.evaluation import ACTIVE
from evolution.management.evaluation_report import format_summary, summarise
from evolution.management.infrastructure import HAS_ERRORS, USAGE
from evolution.management.interrupting import INTERRUPTED, notice_interrupts
from evolution.management.progress_line import ProgressLine
from evolution.models import Evaluation
from evolution.queries.halves import compare_halves, find_division
from evolution.states import EvaluationState
from evolution.tasks.evaluations import perform_evaluation
from harness_repo.git.errors import HarnessRepoError

FAILED = (EvaluationState.PARTIAL, EvaluationState.CANCELLED)


def wait_for(evaluation: Evaluation, out: OutputWrapper) -> None:
    """Work on it, with progress on a terminal, and then on what is left of its base.

    Raises CommandError for what can't be gone on with here, and after Ctrl-C.
    """
    errors = evaluation.results.exclude(error_kind="")
    line = ProgressLine(out, errors.count) if out.isatty() else None
    with notice_interrupts() as is_interrupted:
        for one in filter(None, (evaluation, evaluation.base)):
            one.refresh_from_db()
            if one.state in ACTIVE and not is_interrupted():
                _perform(one, line if one == evaluation else None, is_interrupted)
        if is_interrupted():
            raise CommandError(describe_interrupt(evaluation), returncode=INTERRUPTED)


def _perform(evaluation: Evaluation, line: ProgressLine | None, is_stopping: Callable[[], bool]) -> None:
    try:
        perform_evaluation(evaluation, line, is_stopping)
    except (LoopError, HarnessRepoError) as failure:
        raise CommandError(str(failure), returncode=HAS_ERRORS) from None
    finally:
        if line:
            line.end()


def describe_interrupt(evaluation: Evaluation) -> str:
    """What becomes of what was interrupted."""
    command = f"manage.py resume_evaluation {evaluation.pk} --wait"
    return f"interrupted; what is measured is kept, workers go on with it if there are any, and here {command} does"


def find_evaluation(pk: int) -> Evaluation:
    """The evaluation of that number; CommandError without one."""
    evaluation = Evaluation.objects.filter(pk=pk).first()
    if evaluation is None:
        raise CommandError(f"there is no evaluation {pk}", returncode=USAGE)
    return evaluation


def describe(
    evaluation: Evaluation, *, as_json: bool, is_reused: bool = False, base: Evaluation | None = None
) -> str:
    """What it has come to by now, as one object, its base's in it, or a sentence of each."""
    evaluation.refresh_from_db()
    summary = summarise(evaluation, is_reused=is_reused)
    if base is None:
        return json.dumps(summary) if as_json else format_summary(summary)
    base.refresh_from_db()
    below = summarise(base)
    if as_json:
        return json.dumps({**summary, "base": below, "halves": _describe_halves(base, evaluation)})
    return f"{format_summary(summary)}\nbase: {format_summary(below)}"


def _describe_halves(base: Evaluation, evaluation: Evaluation) -> dict[str, Any] | None:
    """The dev cases that drafters were or might have been shown apart from the others, where a step divided them."""
    held_in = find_division(base, evaluation)
    halves = compare_halves(base, evaluation, held_in) if held_in else None
    return halves.to_dict() if halves else None


def report(
    command: BaseCommand,
    evaluation: Evaluation,
    *,
    as_json: bool,
    is_reused: bool = False,
    base: Evaluation | None = None,
) -> None:
    """Print what it, and its base, have come to, and exit with HAS_ERRORS where that is not all that was asked for."""
    command.stdout.write(describe(evaluation, as_json=as_json, is_reused=is_reused, base=base))
    if any(one.state in FAILED for one in (evaluation, base) if one):
        sys.exit(HAS_ERRORS)
