"""Exchanges a harness's versions with the repository elsewhere that HARNESS_REMOTES names."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.actions.remotes import advance_harness, fetch_harness, push_harness
from evolution.actors import SYSTEM
from evolution.errors import LoopError
from evolution.models import Harness


class Command(BaseCommand):
    """Fetches first, then advances, then pushes, as far as asked."""

    help = (
        "Fetch a harness's branches from its remote (HARNESS_REMOTES), make the remote's main live, or push. What is "
        "fetched lands on refs/remotes/NAME/; nothing of ours moves without --advance."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("harness")
        parser.add_argument("--fetch", action="store_true", help="bring what the remote has")
        advance = "fetch, and make the remote's main live if it builds on ours"
        parser.add_argument("--advance", action="store_true", help=advance)
        push = "push these branches and tags; without any: main and the tags of all releases"
        parser.add_argument("--push", nargs="*", metavar="REF", help=push)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Do what is asked; an error names the part that failed, and what came before it stays done."""
        if not (options["fetch"] or options["advance"] or options["push"] is not None):
            raise CommandError("say what to do: --fetch, --advance, --push")
        harness = Harness.objects.filter(name=options["harness"]).first()
        if harness is None:
            raise CommandError(f"there is no harness {options['harness']}")
        try:
            self._sync(harness, options)
        except LoopError as error:
            raise CommandError(str(error)) from None

    def _sync(self, harness: Harness, options: dict[str, Any]) -> None:
        if options["fetch"] or options["advance"]:
            result = fetch_harness(SYSTEM, harness)
            for name, sha in result.branches.items():
                self.stdout.write(f"fetched {name} {sha[:12]}")
            for name in result.skipped:
                self.stderr.write(f"left out {name}: not a name that can be taken here")
        if options["advance"]:
            release = advance_harness(SYSTEM, harness)
            self.stdout.write(f"live: {release.tag} {release.commit[:12]}" if release else "live already")
        if options["push"] is not None:
            self.stdout.write(f"pushed {', '.join(push_harness(SYSTEM, harness, options['push']))}")
