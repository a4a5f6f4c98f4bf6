"""Takes failures out of files into a harness's inbox."""

import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from evolution.actions.cases import import_failures
from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.adapters.formats import jsonl
from evolution.adapters.formats.detect import FORMATS
from evolution.errors import LoopError
from evolution.loop.cases import ImportReport


class Command(BaseCommand):
    """Reads files in a known format; importing one again adds nothing."""

    help = f"Take failures into the inbox. Formats: tau-bench results, and ours.\n\n{jsonl.__doc__}"

    def create_parser(self, *args: Any, **kwargs: Any) -> Any:
        """Keep the layout of the format's description."""
        return super().create_parser(*args, **kwargs, formatter_class=RawDescriptionHelpFormatter)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS, help="default: %(default)s")
        parser.add_argument("--format", choices=FORMATS, default="auto", dest="fmt")
        parser.add_argument("--all", action="store_true", help="take what passed, too")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would happen, and change nothing"
        )
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import, and print the report."""
        try:
            report = import_failures(
                SYSTEM,
                ensure_starter(SYSTEM, options["harness"]),
                options["paths"],
                options["fmt"],
                only_failures=not options["all"],
                dry_run=options["dry_run"],
            )
        except LoopError as error:
            raise CommandError(str(error)) from None
        if options["as_json"]:
            self.stdout.write(json.dumps(report.to_dict(), ensure_ascii=False))
            return
        self._write(report)

    def _write(self, report: ImportReport) -> None:
        figures = report.to_dict()
        problems = figures.pop("problems", [])
        self.stdout.write(", ".join(f"{name} {figures[name]}" for name in figures))
        for problem in problems:
            self.stderr.write(f"rejected: {problem}")
