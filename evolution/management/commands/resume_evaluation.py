"""Goes on with an evaluation that ended with errors or was cancelled: only what has no score is made."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from evolution.actions.evaluations import resume_evaluation
from evolution.actors import SYSTEM
from evolution.loop.evaluation import ACTIVE
from evolution.management.budget_options import add_budget_options, read_budget
from evolution.management.infrastructure import reach_broker, refuse, tell_what_is_away
from evolution.management.waiting import find_evaluation, report, wait_for


class Command(BaseCommand):
    """Exit code 0: queued or finished; 2: it can't be resumed; 4: errors, budget, infrastructure."""

    help = (
        "Go on with an evaluation that ended with errors or was cancelled: errors are tried again, and what was not "
        "reached is made; scores stay. With --wait also one that is under way is worked on here until it has ended. "
        "Exit code 0: queued, or finished with --wait; 2: there is no such evaluation, or nothing of it to resume; 4: "
        "some results are errors, which are no scores, or the budget, the database or the broker stopped it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "evaluation", type=int, metavar="EVALUATION", help="as in the address of its page"
        )
        add_budget_options(
            parser,
            "what it may use at most from its beginning on, in place of all limits that it has; it keeps them without",
        )
        parser.add_argument("--wait", action="store_true", help="work on it here, too, until it has ended")
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Queue it, and with --wait end it."""
        with tell_what_is_away():
            evaluation = find_evaluation(options["evaluation"])
            enqueue = reach_broker(must=not options["wait"])
            budget = read_budget(options) or None
            if budget or not options["wait"] or evaluation.state not in ACTIVE:
                refuse(lambda: resume_evaluation(SYSTEM, evaluation, budget=budget, enqueue=enqueue))
            if options["wait"]:
                wait_for(evaluation, self.stderr)
            report(self, evaluation, as_json=options["json"])
