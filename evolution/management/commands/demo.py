"""The demonstration: the loop from first measurement to the stop, on a harness of its own, without people."""

import json
import time
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.errors import LoopError
from evolution.management.infrastructure import tell_what_is_away
from evolution.management.unattended import Outcomes, UnattendedLoop, make_fresh_harness

COLUMNS = ("version", "accuracy", "effectiveness", "fixed", "broken", "decision")


class Command(BaseCommand):
    """Runs it in this process; progress goes to standard error, the series to standard output."""

    help = "Run the loop unattended over the demonstration and print the series of versions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run it on a fresh harness."""
        started = time.monotonic()
        try:
            with tell_what_is_away():
                harness = make_fresh_harness()
                self._say(f"harness {harness.name}")
                outcomes = UnattendedLoop(harness, self._say).run()
        except LoopError as error:
            raise CommandError(str(error)) from None
        self._say(f"{time.monotonic() - started:.0f} s")
        self.stdout.write(json.dumps(outcomes.to_dict()) if options["json"] else format_table(outcomes))

    def _say(self, text: str) -> None:
        self.stderr.write(text)
        self.stderr.flush()


def format_table(outcomes: Outcomes) -> str:
    """The series as aligned text, the selected version marked."""
    rows = [COLUMNS]
    for entry in outcomes.steps:
        version = entry.version[:12] + (" *" if entry.version == outcomes.selected else "")
        scores = (f"{entry.accuracy:.2f}", f"{entry.effectiveness:.2f}")
        rows.append((version, *scores, str(entry.fixed), str(entry.broken), entry.decision))
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([*lines, f"\n* selected; the harness is {outcomes.harness}"])
