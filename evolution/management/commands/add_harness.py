"""Makes a harness from a starter or from a folder."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.actions.harnesses import create_harness, ensure_starter, read_folder
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.models import Harness
from evolution.states import HarnessKind
from harness_repo.harness import read_harness
from harness_repo.starters import STARTERS, starter_files


class Command(BaseCommand):
    """Creates the repository with the first version, and says what is wrong with the files."""

    help = "Make a harness: a git repository with a first version, from a starter or from a folder."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("name")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--starter", choices=STARTERS)
        source.add_argument("--from", type=Path, dest="folder", metavar="FOLDER")
        parser.add_argument("--kind", choices=HarnessKind.values, help="default: as harness.yaml says")
        parser.add_argument("--judge", help="the judge harness that scores it; default for agents: judge")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create it."""
        try:
            files = (
                starter_files(options["starter"]) if options["starter"] else read_folder(options["folder"])
            )
            found = read_harness(files)
            kind = options["kind"] or found.kind
            judge = self._judge(kind, options["judge"])
            harness = create_harness(SYSTEM, options["name"], kind, files, judge=judge)
        except LoopError as error:
            raise CommandError(str(error)) from None
        for problem in found.problems:
            self.stderr.write(f"{problem.severity} {problem.path}:{problem.line}: {problem.message}")
        self.stdout.write(f"made {harness.kind} {harness.name} in {harness.path}")

    def _judge(self, kind: str, name: str | None) -> Harness | None:
        if kind == HarnessKind.JUDGE:
            return None
        return ensure_starter(SYSTEM, name or "judge")
