"""Ends an evaluation before its time; what is measured stays, and it can be resumed."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand

from evolution.actions.evaluations import cancel_evaluation
from evolution.actors import SYSTEM
from evolution.management.infrastructure import refuse, tell_what_is_away
from evolution.management.waiting import describe, find_evaluation


class Command(BaseCommand):
    """Exit code 0: cancelled; 2: there is no such evaluation, or it has ended; 4: the database is away."""

    help = (
        "End an evaluation before its time; calls under way are cut off, what is measured stays, and it can be "
        "resumed. Exit code 0: cancelled; 2: there is no such evaluation, or it has ended; 4: the database is away."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "evaluation", type=int, metavar="EVALUATION", help="as in the address of its page"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Cancel it, and print what was measured."""
        with tell_what_is_away():
            evaluation = find_evaluation(options["evaluation"])
            refuse(lambda: cancel_evaluation(SYSTEM, evaluation))
            self.stdout.write(describe(evaluation, as_json=options["json"]))
