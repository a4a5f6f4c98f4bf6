"""Takes a file of known cases in as a dataset version of a harness."""

import json
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from evolution.actions.harnesses import ensure_starter
from evolution.actors import SYSTEM
from evolution.adapters.formats import dataset
from evolution.errors import LoopError
from evolution.loop.datasets import import_dataset
from evolution.management.counting import count_cases


class Command(BaseCommand):
    """The same cases again are the version that is there already; other cases are the next version."""

    help = f"Load a dataset, so that versions of a harness can be measured.\n\n{dataset.__doc__}"

    def create_parser(self, *args: Any, **kwargs: Any) -> Any:
        """Keep the layout of the format's description."""
        return super().create_parser(*args, **kwargs, formatter_class=RawDescriptionHelpFormatter)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("path", type=Path, metavar="FILE")
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS, help="default: %(default)s")
        parser.add_argument("--name", help="default: the file's name")
        parser.add_argument("--json", action="store_true", dest="as_json")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import, and say which version it is."""
        path: Path = options["path"]
        try:
            cases = dataset.read_dataset(path)
            harness = ensure_starter(SYSTEM, options["harness"])
            version = import_dataset(SYSTEM, harness, options["name"] or path.stem, cases)
        except LoopError as error:
            raise CommandError(str(error)) from None
        if options["as_json"]:
            figures = {"dataset": version.dataset.name, "version": version.number, "cases": len(cases)}
            self.stdout.write(json.dumps(figures))
        else:
            values = {"version": version, "cases": count_cases(len(cases)), "harness": harness.name}
            self.stdout.write(_("%(version)s: %(cases)s for %(harness)s") % values)
