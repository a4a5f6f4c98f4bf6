"""Measures a version of a harness on a dataset: by the workers, or with --wait in this process and beside them."""

import json
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.loop.estimates import Estimate
from evolution.loop.evaluation import faults_that_never_strike, newest_version
from evolution.loop.plans import MOST_REPEATS
from evolution.management.budget_options import add_budget_options, positive, read_budget
from evolution.management.estimate_report import format_estimate, summarise_estimate
from evolution.management.infrastructure import USAGE, reach_broker, refuse, tell_what_is_away
from evolution.management.waiting import report, wait_for
from evolution.models import DatasetVersion, Evaluation, Harness
from evolution.queries.estimates import estimate_evaluation
from evolution.states import EvaluationState, Split
from harness_repo.runtime.faults import KINDS, Fault, parse_fault


class Command(BaseCommand):
    """Exit code 0: finished, or queued without --wait; 2: it can't be asked so; 4: errors, budget, infrastructure."""

    help = (
        "Measure a version of a harness on a dataset: every case is answered, and scored by the judge. Without --wait "
        "it is left to the workers. An identical evaluation that is finished is not measured again; the output says "
        "that it is reused. One that is under way is taken, too, unless its budget is another one than is asked for. "
        "A run that ended at a limit (hook_limit: hooks refused every reply) is scored by the last reply that it "
        "proposed; the output counts runs by their status. Exit code 0: finished, or queued without --wait; 2: no "
        "such harness, version or dataset, a number that is none, or another budget; 4: some results are errors, "
        "which are no scores, or the budget, the database, the broker or an endpoint stopped it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS)
        parser.add_argument("--ref", default="main", help="branch, tag or commit; default: main")
        parser.add_argument("--base", default="", help="version to compare with, measured in the same run")
        parser.add_argument("--dataset", default="", help="default: the harness's first one")
        parser.add_argument("--splits", nargs="+", choices=Split.values, default=[Split.DEV, Split.GUARD])
        parser.add_argument("--repeats", type=repeats, default=1, metavar="K", help="trials of each case")
        parser.add_argument(
            "--concurrency", type=positive, metavar="N", help="cases at once, over all workers"
        )
        parser.add_argument(
            "--fresh",
            action="store_true",
            help="make every call of this version, whatever answers are kept; those of --base are taken",
        )
        parser.add_argument(
            "--fault",
            action="append",
            default=[],
            dest="faults",
            metavar="KIND:TOOL:RATE",
            help=f"fail that share of a tool's calls (* is every tool); kinds: {', '.join(KINDS)}; repeatable",
        )
        add_budget_options(
            parser, "what it, and as much again what --base, may use at most; it ends with errors then"
        )
        parser.add_argument(
            "--estimate", action="store_true", help="say what it and --base would take, and start nothing"
        )
        parser.add_argument("--wait", action="store_true", help="work on it here, too, until it has ended")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Start it, and with --wait end it; or estimate it."""
        with tell_what_is_away():
            harness, version = _find(options)
            if options["estimate"]:
                self._estimate(harness, version, options)
            else:
                self._evaluate(harness, version, options)

    def _estimate(self, harness: Harness, version: DatasetVersion, options: dict[str, Any]) -> None:
        def ask(ref: str, *, is_fresh: bool) -> Estimate:
            extent = read_extent(options)
            return refuse(lambda: estimate_evaluation(harness, ref, version, is_fresh=is_fresh, **extent))

        found = ask(options["ref"], is_fresh=options["fresh"])
        # It is not measured afresh beside one that is.
        base = ask(options["base"], is_fresh=False) if options["base"] else None
        said = format_estimate(found, base, currency=settings.MODEL_CURRENCY)
        self.stdout.write(json.dumps(summarise_estimate(found, base)) if options["json"] else said)

    def _evaluate(self, harness: Harness, version: DatasetVersion, options: dict[str, Any]) -> None:
        can_queue = reach_broker(must=not options["wait"])
        evaluation = refuse(lambda: _start(harness, version, options, enqueue=can_queue))
        is_reused = evaluation.state == EvaluationState.FINISHED
        self._warn(evaluation, options)
        if options["wait"]:
            wait_for(evaluation, self.stderr)
        base = evaluation.base if options["base"] else None
        report(self, evaluation, as_json=options["json"], is_reused=is_reused, base=base)

    def _warn(self, evaluation: Evaluation, options: dict[str, Any]) -> None:
        if unknown := faults_that_never_strike(evaluation):
            self.stderr.write(f"warning: no such tool, so these faults never strike: {', '.join(unknown)}")
        if options["fresh"] and (base := evaluation.base) is not None and not base.is_fresh:
            self.stderr.write(f"note: only {options['ref']} is measured afresh; its base is {base} as it is")


def repeats(text: str) -> int:
    """How many trials of each case, for argparse."""
    count = positive(text)
    if count > MOST_REPEATS:
        raise ArgumentTypeError(f"{count} is more than {MOST_REPEATS}")
    return count


def _find(options: dict[str, Any]) -> tuple[Harness, DatasetVersion]:
    harness = refuse(lambda: ensure_starter(SYSTEM, options["harness"]))
    return harness, refuse(lambda: newest_version(harness, options["dataset"]))


def _start(
    harness: Harness, version: DatasetVersion, options: dict[str, Any], *, enqueue: bool
) -> Evaluation:
    return start_evaluation(
        SYSTEM,
        harness,
        options["ref"],
        version,
        concurrency=options["concurrency"],
        budget=read_budget(options),
        is_fresh=options["fresh"],
        base=options["base"],
        enqueue=enqueue,
        **read_extent(options),
    )


def read_extent(options: dict[str, Any]) -> dict[str, Any]:
    """What of the dataset is measured, how often, and under which faults."""
    return {
        "splits": options["splits"],
        "repeats": options["repeats"],
        "faults": read_fault_options(options["faults"]),
    }


def read_fault_options(texts: list[str]) -> list[Fault]:
    """The faults of the command line, or CommandError."""
    try:
        return [parse_fault(text) for text in texts]
    except ValueError as error:
        raise CommandError(f"--fault {error}", returncode=USAGE) from None
