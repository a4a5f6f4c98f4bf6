"""Measures a version of a harness on a dataset: by the workers, or with --wait in this process and beside them."""

import json
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, TypeVar

from celery import current_app
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError
from django.db.models import Count
from kombu.exceptions import OperationalError as BrokerAway

from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.loop.evaluation import ACTIVE, average_scores, faults_that_never_strike, newest_version
from evolution.management.estimate_report import describe_cost, format_estimate, summarise_estimate
from evolution.management.progress_line import ProgressLine
from evolution.models import DatasetVersion, Evaluation, Harness
from evolution.queries.estimates import estimate_evaluation
from evolution.queries.results import count_statuses
from evolution.queries.usage import usage_of
from evolution.states import EvaluationState, Split
from evolution.tasks.evaluations import perform_evaluation
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.faults import KINDS, Fault, parse_fault

# Exit codes of what is asked for and can't be, and of an evaluation in which some results are errors, or that could
# not be made for want of a database, a broker or an endpoint.
USAGE = 2
HAS_ERRORS = 4

T = TypeVar("T")


class Command(BaseCommand):
    """Exit code 0: finished, or queued without --wait; 2: it can't be asked so; 4: errors, budget, infrastructure."""

    help = (
        "Measure a version of a harness on a dataset: every case is answered, and scored by the judge. Without --wait "
        "it is left to the workers. An identical evaluation that is finished is not measured again; the output says "
        "that it is reused. A run that ended at a limit (hook_limit: hooks refused every reply) is scored by the last "
        "reply that it proposed; the output counts runs by their status. Exit code 0: finished, or queued without "
        "--wait; 2: no such harness, version or dataset, or a number that is none; 4: some results are errors, which "
        "are no scores, or the budget, the database, the broker or an endpoint stopped it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS)
        parser.add_argument("--ref", default="main", help="branch, tag or commit; default: main")
        parser.add_argument("--base", default="", help="version to compare with, measured in the same run")
        parser.add_argument("--dataset", default="", help="default: the harness's first one")
        parser.add_argument("--splits", nargs="+", choices=Split.values, default=[Split.DEV, Split.GUARD])
        parser.add_argument("--repeats", type=positive, default=1, metavar="K", help="trials of each case")
        parser.add_argument(
            "--concurrency", type=positive, metavar="N", help="cases at once, over all workers"
        )
        parser.add_argument("--fresh", action="store_true", help="make every call, whatever answers are kept")
        parser.add_argument(
            "--fault",
            action="append",
            default=[],
            dest="faults",
            metavar="KIND:TOOL:RATE",
            help=f"fail that share of a tool's calls (* is every tool); kinds: {', '.join(KINDS)}; repeatable",
        )
        limits = parser.add_argument_group("budget", "what it may use at most; it ends with errors then")
        limits.add_argument("--max-calls", type=positive, metavar="N")
        limits.add_argument("--max-tokens", type=positive, metavar="N")
        limits.add_argument("--max-money", type=amount, metavar="X", help=f"in {settings.MODEL_CURRENCY}")
        limits.add_argument("--max-seconds", type=positive, metavar="S")
        parser.add_argument(
            "--estimate", action="store_true", help="say what it would take, and start nothing"
        )
        parser.add_argument("--wait", action="store_true", help="work on it here, too, until it has ended")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Start it, and with --wait end it; or estimate it."""
        try:
            harness, version = _find(options)
            if options["estimate"]:
                self._estimate(harness, version, options)
            else:
                self._evaluate(harness, version, options)
        except (OperationalError, InterfaceError) as failure:
            raise _away("database", failure) from failure
        except BrokerAway as failure:
            raise _away("broker", failure) from failure

    def _estimate(self, harness: Harness, version: DatasetVersion, options: dict[str, Any]) -> None:
        asked = {
            "splits": options["splits"],
            "repeats": options["repeats"],
            "faults": read_fault_options(options["faults"]),
            "is_fresh": options["fresh"],
        }
        found = _refuse(lambda: estimate_evaluation(harness, options["ref"], version, **asked))
        said = format_estimate(found, settings.MODEL_CURRENCY)
        self.stdout.write(json.dumps(summarise_estimate(found)) if options["json"] else said)

    def _evaluate(self, harness: Harness, version: DatasetVersion, options: dict[str, Any]) -> None:
        can_queue = _reach_broker(must=not options["wait"])
        evaluation = _refuse(lambda: _start(harness, version, options, enqueue=can_queue))
        is_reused = evaluation.state == EvaluationState.FINISHED
        if unknown := faults_that_never_strike(evaluation):
            self.stderr.write(f"warning: no such tool, so these faults never strike: {', '.join(unknown)}")
        if options["wait"]:
            self._wait(evaluation)
        evaluation.refresh_from_db()
        summary = summarise(evaluation, is_reused=is_reused)
        self.stdout.write(json.dumps(summary) if options["json"] else format_summary(summary))
        if evaluation.state in (EvaluationState.PARTIAL, EvaluationState.CANCELLED):
            sys.exit(HAS_ERRORS)

    def _wait(self, evaluation: Evaluation) -> None:
        """Work on it until it has ended, and then on what is left of its base."""
        errors = evaluation.results.exclude(error_kind="")
        line = ProgressLine(self.stderr, errors.count) if self.stderr.isatty() else None
        for one in filter(None, (evaluation, evaluation.base)):
            one.refresh_from_db()
            if one.state not in ACTIVE:
                continue
            try:
                perform_evaluation(one, line if one == evaluation else None)
                if line and one == evaluation:
                    # Others may have made the last ones.
                    line(one.results.count(), one.total)
            except (LoopError, HarnessRepoError) as failure:
                raise CommandError(str(failure), returncode=HAS_ERRORS) from None
            finally:
                if line:
                    line.end()


def _away(what: str, failure: Exception) -> CommandError:
    """What can't be reached, in a sentence; what was measured before is kept."""
    said = (str(failure).splitlines() or [""])[0].strip()
    return CommandError(f"the {what} can't be reached: {said}", returncode=HAS_ERRORS)


def positive(text: str) -> int:
    """A number of at least 1, for argparse."""
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 13 and int(text) > 0):
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number above 0")
    return int(text)


def amount(text: str) -> Decimal:
    """An amount of money above 0, for argparse."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or value <= 0:
        raise ArgumentTypeError(f"{text[:40]!r} is not an amount above 0")
    return value


def _find(options: dict[str, Any]) -> tuple[Harness, DatasetVersion]:
    harness = _refuse(lambda: ensure_starter(SYSTEM, options["harness"]))
    return harness, _refuse(lambda: newest_version(harness, options["dataset"]))


def _start(
    harness: Harness, version: DatasetVersion, options: dict[str, Any], *, enqueue: bool
) -> Evaluation:
    limits = {part: options[f"max_{part}"] for part in ("calls", "tokens", "money", "seconds")}
    return start_evaluation(
        SYSTEM,
        harness,
        options["ref"],
        version,
        splits=options["splits"],
        repeats=options["repeats"],
        faults=read_fault_options(options["faults"]),
        concurrency=options["concurrency"],
        budget={part: limit for part, limit in limits.items() if limit is not None},
        is_fresh=options["fresh"],
        base=options["base"],
        enqueue=enqueue,
    )


def _refuse(ask: Callable[[], T]) -> T:
    """What is asked for, or CommandError for what can't be had."""
    try:
        return ask()
    except (LoopError, HarnessRepoError) as failure:
        raise CommandError(str(failure), returncode=USAGE) from None


def _reach_broker(*, must: bool) -> bool:
    """Whether tasks can be sent; without a broker there are no workers to wait for, so that it `must` be there."""
    try:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=5)
    except BrokerAway:
        if must:
            raise
        return False
    return True


def read_fault_options(texts: list[str]) -> list[Fault]:
    """The faults of the command line, or CommandError."""
    try:
        return [parse_fault(text) for text in texts]
    except ValueError as error:
        raise CommandError(f"--fault {error}", returncode=USAGE) from None


def summarise(evaluation: Evaluation, *, is_reused: bool = False) -> dict[str, Any]:
    """The object that `evaluate --json` prints; scores on the 0-100 scale, guard cases left out of them.

    Calls, tokens and cost are what this evaluation spent: those answered from kept calls are counted as `cached`.
    """
    averages = average_scores(evaluation)
    spent = usage_of(evaluation).total
    return {
        "evaluation": evaluation.pk,
        "status": evaluation.state,
        "reused": is_reused,
        "cases": evaluation.total // max(evaluation.repeats, 1),
        "results": averages.results,
        "errors": averages.errors,
        "errors_by_kind": count_errors(evaluation),
        "by_status": count_statuses(evaluation),
        "accuracy": _rounded(averages.accuracy),
        "effectiveness": _rounded(averages.effectiveness),
        "calls": spent.made,
        "cached": spent.cached,
        "wall_seconds": measure_wall(evaluation),
        "tokens": {
            "prompt": spent.prompt_tokens,
            "completion": spent.completion_tokens,
            "cached": spent.cached_tokens,
        },
        "cost": None if spent.cost is None else float(spent.cost),
        "stopped_by": evaluation.stopped_by,
    }


def measure_wall(evaluation: Evaluation) -> float | None:
    """Seconds from its start to its end, pauses included; None before both."""
    if evaluation.started_at is None or evaluation.finished_at is None:
        return None
    return round((evaluation.finished_at - evaluation.started_at).total_seconds(), 3)


def count_errors(evaluation: Evaluation) -> dict[str, int]:
    """Error kind -> results: whose failures they are, since an agent may bring them about on purpose."""
    kinds = evaluation.results.exclude(error_kind="").order_by("error_kind")
    return dict(kinds.values_list("error_kind").annotate(count=Count("pk")))


def format_summary(summary: dict[str, Any]) -> str:
    """The same for people."""
    scores = [
        f"{name} {summary[name]}" for name in ("accuracy", "effectiveness") if summary[name] is not None
    ]
    kinds = ", ".join(f"{kind}: {count}" for kind, count in summary["errors_by_kind"].items())
    counts = f"{summary['results']} results over {summary['cases']} cases, {summary['errors']} errors"
    counts += f" ({kinds})" if kinds else ""
    statuses = ", ".join(f"{status}: {count}" for status, count in summary["by_status"].items())
    counts += f"; runs: {statuses}" if statuses else ""
    reused = " (reused)" if summary["reused"] else ""
    stopped = f" by its budget of {summary['stopped_by']}" if summary["stopped_by"] else ""
    name = f"evaluation {summary['evaluation']}{reused} is {summary['status']}{stopped}"
    return f"{name}: {counts}; {', '.join(scores) or 'no score'}; {format_spending(summary)}"


def format_spending(summary: dict[str, Any]) -> str:
    """Calls, tokens, money and time of a summary."""
    tokens = summary["tokens"]
    wall = "" if summary["wall_seconds"] is None else f", in {summary['wall_seconds']} s"
    return (
        f"{summary['calls']} of {summary['calls'] + summary['cached']} calls made, "
        f"{tokens['prompt']} + {tokens['completion']} tokens, "
        f"{describe_cost(summary['cost'], settings.MODEL_CURRENCY)}{wall}"
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
