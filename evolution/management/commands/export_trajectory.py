"""Writes the trajectory of one result for other programs."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.errors import LoopError
from evolution.models import CaseResult
from evolution.queries.trajectories import FORMATS, export_trajectory


class Command(BaseCommand):
    """Prints one JSON object, and changes nothing."""

    help = "Print a result's trajectory as OpenAI messages, as ATIF, or as it is stored."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("result", type=int, metavar="RESULT_ID", help="as in the address of its page")
        parser.add_argument("--format", choices=FORMATS, default="openai", help="default: %(default)s")
        parser.add_argument("--json", action="store_true", help="print the JSON object on one line")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print it, or end with an error when there is none."""
        results = CaseResult.objects.select_related("case", "evaluation__harness")
        result = results.filter(pk=options["result"]).first()
        if result is None:
            raise CommandError(f"there is no result {options['result']}")
        try:
            record = export_trajectory(result, options["format"])
        except LoopError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(json.dumps(record, ensure_ascii=False, indent=None if options["json"] else 2))
