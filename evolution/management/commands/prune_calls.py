"""Throws away kept answers of model calls that nobody has used for long, or that are a model's."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.loop.pruning import Pruned, count_calls, prune_calls, select_calls

DEFAULT_DAYS = 90


class Command(BaseCommand):
    """Deletes in batches, beside evaluations that run; they ask again for what is gone."""

    help = (
        "Throw away kept answers of model calls. Without an option those go that nobody has used for "
        f"{DEFAULT_DAYS} days; with --model alone all of that model's. Results, trajectories and scores stay: only "
        "an evaluation that asks the same again pays again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument(
            "--unused-for", type=float, metavar="DAYS", help="since their last use, to within a day"
        )
        parser.add_argument("--model", default="", help="only this model's, by the name that figures have")
        parser.add_argument("--dry-run", action="store_true", help="say what would go, and keep it")
        parser.add_argument(
            "--json", action="store_true", help="print one JSON object: calls, bytes, deleted"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Delete them and say how many there were."""
        days = options["unused_for"]
        if days is None:
            days = 0.0 if options["model"] else DEFAULT_DAYS
        if not 0 <= days < 36_500:
            raise CommandError(f"--unused-for {days:g}: give a number of days from 0", returncode=2)
        calls = select_calls(days, options["model"])
        pruned = count_calls(calls) if options["dry_run"] else prune_calls(calls)
        self.stdout.write(_write(pruned, options))


def _write(pruned: Pruned, options: dict[str, Any]) -> str:
    is_deleted = not options["dry_run"]
    if options["json"]:
        return json.dumps({"calls": pruned.calls, "bytes": pruned.size, "deleted": is_deleted})
    verb = "deleted" if is_deleted else "would be deleted"
    return f"{pruned.calls} kept calls {verb}, {pruned.size / 2**20:.1f} MiB of replies"
