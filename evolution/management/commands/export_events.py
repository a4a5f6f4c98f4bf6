"""Writes the audit trail out, for whoever keeps it elsewhere."""

import os
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.models import Harness
from evolution.queries.events import FORMATS, EventFilter, export_events

FIRST_DAY, LAST_DAY = date(1970, 1, 2), date(9998, 12, 30)


class Command(BaseCommand):
    """One line per event, oldest first."""

    help = "Write the audit trail of a harness, or of the whole installation, as JSON Lines or CSV."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("harness", nargs="?", type=_text, default="", help="of this harness only")
        parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], dest="fmt")
        parser.add_argument("--actor", type=_text, default="", help="what this person did")
        parser.add_argument(
            "--verb",
            type=_text,
            default="",
            help='a verb such as "proposal.confirmed", or a kind: "proposal"',
        )
        parser.add_argument("--since", type=_day, help="from this day on, YYYY-MM-DD")
        parser.add_argument("--until", type=_day, help="up to this day, which is included")
        parser.add_argument("--output", type=Path, help="into this file, which must not be there yet")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write, piece by piece: nothing is held at once."""
        wanted = EventFilter(**{name: options[name] for name in ("actor", "verb", "since", "until")})
        lines = export_events(_find_harness(options["harness"]), options["fmt"], wanted)
        if options["output"] is None:
            self._print(lines)
            return
        try:
            with options["output"].open("x", encoding="utf-8", newline="") as file:
                file.writelines(lines)
        except OSError as error:
            raise CommandError(f"can't write {options['output']}: {error.strerror}") from None
        self.stderr.write(f"written to {options['output']}")

    def _print(self, lines: Iterable[str]) -> None:
        """Write to the standard output; whoever reads it, `head` say, may stop before the end."""
        try:
            for line in lines:
                self.stdout.write(line, ending="")
            self.stdout.flush()
        except BrokenPipeError:
            # What is still buffered is written at the end of the process, where it would fail again.
            with Path(os.devnull).open("w") as nowhere:
                os.dup2(nowhere.fileno(), self.stdout.fileno())


def _text(text: str) -> str:
    if "\0" in text:
        raise ArgumentTypeError("has a NUL character, which nothing in the database has")
    return text


def _day(text: str) -> date:
    day = date.fromisoformat(text)
    # Beyond these, a day has no next one, or begins in no year somewhere on earth.
    if not FIRST_DAY <= day <= LAST_DAY:
        raise ArgumentTypeError(f"{day} is not between {FIRST_DAY} and {LAST_DAY}")
    return day


def _find_harness(name: str) -> Harness | None:
    if not name:
        return None
    harness = Harness.objects.filter(name=name).first()
    if harness is None:
        raise CommandError(f"there is no harness {name}")
    return harness
