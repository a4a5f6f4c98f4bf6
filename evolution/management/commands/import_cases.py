"""Takes failures out of files into a harness's inbox."""

import json
import sys
import time
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, OutputWrapper
from django.utils.translation import gettext as _

from evolution.actions.harnesses import ensure_starter, find_starter
from evolution.actions.imports import count_import, ensure_source, import_paths, options_for, read_problems
from evolution.actors import SYSTEM
from evolution.adapters.formats import jsonl
from evolution.adapters.formats.detect import FORMATS, READERS
from evolution.adapters.formats.mapping import parse_mapping
from evolution.errors import LoopError
from evolution.loop import failure_rules
from evolution.loop.cases import COUNTS
from evolution.loop.failure_rules import parse_rule
from evolution.loop.imports import ImportOptions, read_options
from evolution.management.infrastructure import USAGE, tell_what_is_away
from evolution.models import ImportRun, Source

# Exit code when records were rejected.
LEFT_OUT = 4
MOST_SHOWN = 20
# Seconds between two writes of the progress.
PAUSE = 0.2


def describe_formats() -> str:
    """The formats that are read, each with the first lines of what its reader says."""
    described = [(name, (reader.__doc__ or "").split("\n\n")[0]) for name, reader in READERS.items()]
    return "\n".join(
        fill(" ".join(text.split()), 112, initial_indent=f"    {name:15}", subsequent_indent=" " * 19)
        for name, text in described
    )


class Command(BaseCommand):
    """Exit code 0: all was taken in; 2: nothing was, for want of a file; 4: some records were rejected."""

    help = (
        "Take failures into the inbox. What a file is, its content says. Importing again adds nothing, and an import\n"
        "that was cut off is gone on with by the same command. A failure that is there already under another id, with\n"
        "the same texts, is a duplicate too: its case counts how often it was seen. Exit code 0: all was taken in; 2:\n"
        "a file, format or rule is not to be had, and nothing was done; 4: records were rejected, or the database is\n"
        "away.\n\n"
        f"What counts as a failure is a rule. {failure_rules.RULE_HELP}\n\n"
        f"Formats, and what a record of each is:\n\n{describe_formats()}\n\n{jsonl.__doc__}"
    )

    def create_parser(self, *args: Any, **kwargs: Any) -> Any:
        """Keep the layout of the format's description."""
        return super().create_parser(*args, **kwargs, formatter_class=RawDescriptionHelpFormatter)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a file, archive or folder")
        parser.add_argument("--harness", default=settings.DEFAULT_HARNESS, help="default: %(default)s")
        parser.add_argument("--format", choices=FORMATS, default="", dest="fmt", help="default: found out")
        parser.add_argument(
            "--source", default="", help="what they are booked under; its rule and mapping hold"
        )
        parser.add_argument("--mapping", type=Path, metavar="FILE", help="JSON: our field -> column or path")
        parser.add_argument("--rule", default="", help=f"what a failure is; default: {failure_rules.FILES}")
        which = parser.add_mutually_exclusive_group()
        which.add_argument("--all", action="store_true", help="take what passed, too")
        which.add_argument("--failures-only", action="store_true", help="the default")
        parser.add_argument(
            "--dry-run", action="store_true", help="say what would happen, and change nothing"
        )
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Import, and print the report."""
        progress = ImportProgress(self.stderr) if self.stderr.isatty() else None
        try:
            with tell_what_is_away():
                run, problems = _import(options, progress or (lambda _run: None))
        except LoopError as error:
            raise CommandError(str(error), returncode=USAGE) from None
        finally:
            if progress:
                progress.end()
        if options["as_json"]:
            self.stdout.write(json.dumps(summarise(run, problems), ensure_ascii=False))
        else:
            self._write(run, problems)
        if run.rejected:
            sys.exit(LEFT_OUT)

    def _write(self, run: ImportRun, problems: Sequence[dict[str, Any]]) -> None:
        self.stdout.write(", ".join(f"{name} {getattr(run, name)}" for name in COUNTS))
        if run.duplicate:
            self.stdout.write(
                _("duplicate: there already, or the same under another id, counted on its case")
            )
        if run.passed:
            rule = str(read_options(run.options).rule)
            text = _("passed: no failure by the rule %(rule)s; --all takes them, too")
            self.stdout.write(text % {"rule": rule})
        if run.left_out:
            names = ", ".join(run.left_out["names"][:MOST_SHOWN])
            what = {"count": run.left_out["count"], "names": names}
            self.stdout.write(_("left out, for want of records: %(count)s files (%(names)s)") % what)
        if run.masked:
            self.stdout.write("masked: " + ", ".join(f"{name} {n}" for name, n in sorted(run.masked.items())))
        for problem in problems[:MOST_SHOWN]:
            self.stderr.write(_("rejected: %(problem)s") % {"problem": describe_problem(problem)})
        if (more := len(problems) - MOST_SHOWN) > 0:
            self.stderr.write(_("and %(count)s more") % {"count": more})


def _import(
    options: dict[str, Any], progress: Callable[[ImportRun], None]
) -> tuple[ImportRun, list[dict[str, Any]]]:
    paths, name = options["paths"], options["source"]
    source = Source.objects.filter(harness__name=options["harness"], name=name).first()
    wanted = _wanted(options, source)
    if options["dry_run"]:
        harness = find_starter(options["harness"])
        return count_import(
            SYSTEM, harness, paths, wanted, source=source, source_name=name, progress=progress
        )
    harness = ensure_starter(SYSTEM, options["harness"])
    if name and source is None:
        source = ensure_source(SYSTEM, harness, name)
    run = import_paths(SYSTEM, harness, paths, wanted, source=source, progress=progress)
    return run, read_problems(run)


def _wanted(options: dict[str, Any], source: Source | None) -> ImportOptions:
    rule = parse_rule(options["rule"]) if options["rule"] else None
    mapping = _read_mapping(options["mapping"]) if options["mapping"] else None
    return options_for(
        source, rule=rule, format=options["fmt"], mapping=mapping, only_failures=not options["all"]
    )


def _read_mapping(path: Path) -> dict[str, str]:
    try:
        return parse_mapping(path.read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise CommandError(f"{path}: {error}", returncode=USAGE) from None


def summarise(run: ImportRun, problems: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The object that `import_cases --json` prints."""
    return {
        **{name: getattr(run, name) for name in COUNTS},
        "problems": [
            {name: value for name, value in problem.items() if name != "number" or value}
            for problem in problems
        ],
        "masked": run.masked,
        "formats": run.formats,
        "left_out": run.left_out.get("names", []),
    }


def describe_problem(problem: dict[str, Any]) -> str:
    """A problem as a sentence: file, line and why."""
    if problem["number"]:
        return _("%(file)s, line %(line)d, record %(number)d: %(reason)s") % problem
    return _("%(file)s, line %(line)d: %(reason)s") % problem


class ImportProgress:
    """How far an import is, on one line of a terminal that is written over."""

    def __init__(self, out: OutputWrapper) -> None:
        self.out = out
        self.began = self.written_at = time.monotonic()
        self.first: int | None = None
        self.width = 0

    def __call__(self, run: ImportRun) -> None:
        """Say it, if the last time is long enough ago."""
        now = time.monotonic()
        self.first = run.read if self.first is None else self.first
        if now - self.written_at < PAUSE:
            return
        self.written_at = now
        rate = (run.read - self.first) / (now - self.began)
        line = f"read {run.read}  new {run.new}  rejected {run.rejected}  {rate:.0f}/s"
        self.out.write("\r" + line.ljust(self.width), style_func=str, ending="")
        self.out.flush()
        self.width = len(line)

    def end(self) -> None:
        """Go on below the line."""
        if self.width:
            self.out.write("", style_func=str)
