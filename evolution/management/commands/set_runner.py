"""Sets which agent evaluations of a harness measure: the workbench's runtime, a command, or an HTTP endpoint."""

import argparse
import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.actions.harnesses import ensure_starter
from evolution.actions.runners import set_runner
from evolution.actors import SYSTEM
from evolution.adapters.tool_access import build_tool_access
from evolution.errors import LoopError
from evolution.loop.runners import detail_runner, doubts_about_command

# Option -> field of the choice, for those that may be left out.
OPTIONS = ("seconds", "memory_mb", "environment", "headers")


class Command(BaseCommand):
    """The choice stands in the database, never in the harness: a model edits that."""

    help = (
        "Set which agent evaluations of a harness measure. A command gets each case as JSON on standard input, in a "
        'throwaway copy of the version; an endpoint gets it by POST. Both give back a trajectory or {"reply": ...}.'
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("harness")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
        parser.add_argument("--seconds", type=float, help="time-out of one run; default: 120")
        parser.add_argument(
            "--memory-mb", type=int, help="limit for each process of a command; default: 2048"
        )
        parser.add_argument(
            "--environment",
            action="append",
            metavar="NAME",
            help="a variable that a command is given; repeatable",
        )
        parser.add_argument(
            "--header",
            action="append",
            dest="headers",
            metavar="'NAME: VALUE'",
            help="sent to an endpoint, secrets as ${secret:NAME}; repeatable",
        )
        choice = parser.add_mutually_exclusive_group(required=True)
        choice.add_argument("--native", action="store_true", help="the workbench's runtime")
        choice.add_argument("--http", metavar="URL")
        choice.add_argument(
            "--command", nargs=argparse.REMAINDER, dest="argv", help="all that follows is the command line"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Set it, and print the choice in full."""
        try:
            harness = ensure_starter(SYSTEM, options["harness"])
            chosen = set_runner(SYSTEM, harness, read_choice(options), build_tool_access())
            doubt = doubts_about_command(chosen, harness)
        except LoopError as error:
            raise CommandError(str(error)) from None
        if doubt:
            self.stderr.write(f"warning: {doubt}")
        if options["as_json"]:
            self.stdout.write(json.dumps({"harness": harness.name, "runner": chosen}))
        else:
            self.stdout.write(f"{harness.name} is measured through: {detail_runner(chosen)}")


def read_choice(options: dict[str, Any]) -> dict[str, Any]:
    """The choice that the options stand for; CommandError for a header without a value."""
    given = {name: options[name] for name in OPTIONS if options.get(name) is not None}
    if "headers" in given:
        given["headers"] = dict(map(_read_header, given["headers"]))
    if options["native"]:
        if given:
            raise CommandError(f"--native takes no further options, such as {', '.join(sorted(given))}")
        return {}
    if options["http"]:
        return {"kind": "http", "url": options["http"], **given}
    return {"kind": "command", "command": options["argv"], **given}


def _read_header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon:
        raise CommandError(f"{text!r} is no header; write 'NAME: VALUE'")
    return name.strip(), value.strip()
