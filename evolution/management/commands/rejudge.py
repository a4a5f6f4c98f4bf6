"""Scores the answers of an evaluation by another version of the judge."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from evolution.actions.evaluations import rejudge_evaluation
from evolution.actors import SYSTEM
from evolution.management.budget_options import add_budget_options, read_budget
from evolution.management.infrastructure import reach_broker, refuse, tell_what_is_away
from evolution.management.waiting import find_evaluation, report, wait_for
from evolution.states import EvaluationState


class Command(BaseCommand):
    """Exit code 0: queued or finished; 2: no such evaluation or judge; 4: errors, budget, infrastructure."""

    help = (
        "Score the answers of an evaluation by another version of its judge, as an evaluation of its own; no agent is "
        "run. Exit code 0: queued, or finished with --wait; 2: there is no such evaluation or version of the judge; "
        "4: some results are errors, which are no scores, or the budget, the database or the broker stopped it."
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
        add_budget_options(parser, "what the judge may use at most; it ends with errors then")
        parser.add_argument("--wait", action="store_true", help="work on it here, too, until it has ended")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Start it, and with --wait perform it, and print what it came to."""
        with tell_what_is_away():
            source = find_evaluation(options["evaluation"])
            wanted = {"is_fresh": options["fresh"], "budget": read_budget(options)}
            wanted["enqueue"] = reach_broker(must=not options["wait"])
            made = refuse(lambda: rejudge_evaluation(SYSTEM, source, options["judge_ref"], **wanted))
            is_reused = made.state == EvaluationState.FINISHED
            if options["wait"]:
                wait_for(made, self.stderr)
            report(self, made, as_json=options["json"], is_reused=is_reused)
