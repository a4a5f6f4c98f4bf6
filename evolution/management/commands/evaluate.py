"""Measures a version of a harness on a dataset, in this process and beside any workers."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db.models import Count

from evolution.actions.evaluations import start_evaluation
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.loop.evaluation import average_scores, faults_that_never_strike, newest_version
from evolution.models import Evaluation
from evolution.queries.results import count_statuses
from evolution.states import EvaluationState, Split
from evolution.tasks.evaluations import perform_evaluation
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.faults import KINDS, Fault, parse_fault

# Exit code of an evaluation in which some results are errors.
HAS_ERRORS = 4


class Command(BaseCommand):
    """Exit code 0: finished; 4: some results are errors."""

    help = (
        "Measure a version of a harness on a dataset: every case is answered, and scored by the judge. An identical "
        "evaluation that is finished is not measured again; the output says that it is reused. A run that ended at a "
        "limit (hook_limit: hooks refused every reply) is scored by the last reply that it proposed; the output counts "
        "runs by their status. Exit code 0: finished; 4: some results are errors, which are no scores."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS)
        parser.add_argument("--ref", default="main", help="branch, tag or commit; default: main")
        parser.add_argument("--dataset", default="", help="default: the harness's first one")
        parser.add_argument("--splits", nargs="+", choices=Split.values, default=[Split.DEV, Split.GUARD])
        parser.add_argument("--repeats", type=int, default=1)
        parser.add_argument(
            "--fault",
            action="append",
            default=[],
            dest="faults",
            metavar="KIND:TOOL:RATE",
            help=f"fail that share of a tool's calls (* is every tool); kinds: {', '.join(KINDS)}; repeatable",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Measure it and print the averages."""
        try:
            evaluation = self._start(options)
            is_reused = evaluation.state == EvaluationState.FINISHED
            if unknown := faults_that_never_strike(evaluation):
                self.stderr.write(
                    f"warning: no such tool, so these faults never strike: {', '.join(unknown)}"
                )
            perform_evaluation(evaluation, self._progress if self.stderr.isatty() else None)
        except (LoopError, HarnessRepoError) as error:
            raise CommandError(str(error)) from None
        evaluation.refresh_from_db()
        summary = summarise(evaluation, is_reused=is_reused)
        self.stdout.write(json.dumps(summary) if options["json"] else format_summary(summary))
        if summary["errors"]:
            sys.exit(HAS_ERRORS)

    def _start(self, options: dict[str, Any]) -> Evaluation:
        harness = ensure_starter(SYSTEM, options["harness"])
        version = newest_version(harness, options["dataset"])
        faults = read_fault_options(options["faults"])
        wanted = {
            "splits": options["splits"],
            "repeats": options["repeats"],
            "faults": faults,
            "enqueue": False,
        }
        return start_evaluation(SYSTEM, harness, options["ref"], version, **wanted)

    def _progress(self, done: int, total: int) -> None:
        self.stderr.write(f"\r{done}/{total}", ending="" if done < total else "\n")


def read_fault_options(texts: list[str]) -> list[Fault]:
    """The faults of the command line, or CommandError."""
    try:
        return [parse_fault(text) for text in texts]
    except ValueError as error:
        raise CommandError(f"--fault {error}") from None


def summarise(evaluation: Evaluation, *, is_reused: bool = False) -> dict[str, Any]:
    """The object that `evaluate --json` prints; scores on the 0-100 scale, guard cases left out of them."""
    averages = average_scores(evaluation)
    return {
        "evaluation": evaluation.pk,
        "status": evaluation.state,
        "reused": is_reused,
        "cases": averages.cases,
        "results": averages.results,
        "errors": averages.errors,
        "errors_by_kind": count_errors(evaluation),
        "by_status": count_statuses(evaluation),
        "accuracy": _rounded(averages.accuracy),
        "effectiveness": _rounded(averages.effectiveness),
    }


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
    name = f"evaluation {summary['evaluation']}{reused}"
    return f"{name} is {summary['status']}: {counts}; {', '.join(scores) or 'no score'}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)
