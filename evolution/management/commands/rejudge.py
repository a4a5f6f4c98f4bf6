"""Scores the answers of an evaluation by another version of the judge."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.actions.evaluations import rejudge_evaluation
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.management.commands.evaluate import HAS_ERRORS, format_summary, summarise
from evolution.models import Evaluation
from evolution.states import EvaluationState
from evolution.tasks.evaluations import perform_evaluation
from harness_repo.git.errors import HarnessRepoError


class Command(BaseCommand):
    """Exit code 0: queued or finished; 2: no such evaluation or judge; 4: ended with errors."""

    help = (
        "Score the answers of an evaluation by another version of its judge, as an evaluation of its own; no agent is "
        "run. Exit code 0: queued, or finished with --wait; 2: there is no such evaluation or version of the judge; "
        "4: some results are errors, which are no scores."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "evaluation", type=int, metavar="EVALUATION", help="as in the address of its page"
        )
        parser.add_argument(
            "--judge-ref", default="main", help="branch, tag or commit of the judge; default: main"
        )
        parser.add_argument(
            "--fresh", action="store_true", help="ask the judge anew, whatever it has answered"
        )
        parser.add_argument("--wait", action="store_true", help="work on it here until it has ended")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Start it, and with --wait perform it, and print what it came to."""
        made = self._start(options)
        is_reused = made.state == EvaluationState.FINISHED
        if options["wait"] and not is_reused:
            perform_evaluation(made)
            made.refresh_from_db()
        summary = summarise(made, is_reused=is_reused)
        self.stdout.write(json.dumps(summary) if options["json"] else format_summary(summary))
        if summary["errors"] or made.state == EvaluationState.CANCELLED:
            sys.exit(HAS_ERRORS)

    def _start(self, options: dict[str, Any]) -> Evaluation:
        evaluation = Evaluation.objects.filter(pk=options["evaluation"]).first()
        if evaluation is None:
            raise CommandError(f"there is no evaluation {options['evaluation']}", returncode=2)
        wanted = {"is_fresh": options["fresh"], "enqueue": not options["wait"]}
        try:
            return rejudge_evaluation(SYSTEM, evaluation, options["judge_ref"], **wanted)
        except (LoopError, HarnessRepoError) as error:
            raise CommandError(str(error), returncode=2) from None
