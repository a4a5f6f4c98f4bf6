"""Says what is wrong with a harness or a repository of skills: a folder, a git repository, or one of the workbench.

A path needs no database. Exit code 0: no errors (there may be warnings); 1: errors; 2: it could not be checked.
"""

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.loop.repositories import open_repository
from evolution.management.harness_report import build_report, count_files, problem_lines, summary_line
from evolution.models import Harness
from harness_repo.folder import Source, read_source
from harness_repo.format.adoption import propose_harness
from harness_repo.format.harness import read_harness
from harness_repo.format.problems import visible
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import MAIN

HAS_ERRORS = 1
USAGE = 2


class Command(BaseCommand):
    """Reads without changing anything, follows no link, and runs nothing of what it reads."""

    help = "Say what is wrong with a harness: a folder, a git repository, or a harness of the workbench."
    # They would look at the database, which a path does not need.
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("target", metavar="PATH_OR_REPO", help="a folder, a git repository, or a name")
        parser.add_argument(
            "--ref",
            help="branch, tag or commit; default: HEAD of a bare repository, main of a harness of the workbench, "
            "and any other folder as it lies there",
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        parser.add_argument(
            "--adopt",
            action="store_true",
            help="without harness.yaml: print the files that make it a harness, and what would be wrong then",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Check it, and print what was found; with --json, an object even when it cannot be checked."""
        try:
            text, has_errors = _try(
                options["target"], options["ref"], adopt=options["adopt"], as_json=options["json"]
            )
        except CommandError as error:
            if not options["json"]:
                raise
            self.stdout.write(json.dumps({"error": str(error)}, indent=2))
            sys.exit(error.returncode)
        self.stdout.write(text)
        if has_errors:
            sys.exit(HAS_ERRORS)


def _try(target: str, ref: str | None, *, adopt: bool, as_json: bool) -> tuple[str, bool]:
    """As _check; whatever goes wrong is a CommandError with USAGE."""
    try:
        return _check(target, ref, adopt=adopt, as_json=as_json)
    except CommandError:
        raise
    except (HarnessRepoError, OSError) as error:
        raise CommandError(str(error), returncode=USAGE) from None
    except Exception as error:
        # What is read may be anybody's, and a 1 would say that errors were found in it.
        said = (str(error).splitlines() or [""])[0][:300]
        message = f"{target} cannot be checked: {type(error).__name__}: {said}"
        raise CommandError(message, returncode=USAGE) from error


def _check(target: str, ref: str | None, *, adopt: bool, as_json: bool) -> tuple[str, bool]:
    """What is to be printed, and whether there are errors."""
    source = find_source(target, ref)
    proposed = _propose(source, target) if adopt else {}
    harness = read_harness(replace(source.snapshot, files={**source.snapshot.files, **proposed}))
    report = build_report(target, source, harness, proposed)
    text = json.dumps(report, indent=2) if as_json else _as_lines(report, problem_lines(harness))
    return text, report["errors"] > 0


def find_source(target: str, ref: str | None) -> Source:
    """What stands at a path, or in a harness of that name; CommandError with USAGE when there is neither."""
    # A path comes first: it is what needs no database.
    if os.path.lexists(target):
        return read_source(target, ref)
    harness = None if "/" in target else Harness.objects.filter(name=target).first()
    if harness is None:
        message = f"there is neither a folder nor a harness {target}"
        raise CommandError(message, returncode=USAGE)
    repository = open_repository(harness)
    commit = repository.resolve(ref or MAIN)
    return Source(repository.snapshot(commit), commit)


def _propose(source: Source, target: str) -> dict[str, bytes]:
    return propose_harness(source.snapshot, Path(target).resolve().name.removesuffix(".git"))


def _as_lines(report: Mapping[str, Any], problems: Sequence[str]) -> str:
    """The report as lines: proposed files, one line per problem, notes, a summary."""
    files = [f"--- {path}\n{text}" for path, text in report["proposed"].items()]
    notes = [visible(f"note: {report['note']}")] if report["note"] else []
    if report["differing"]:
        notes.append(
            f"note: {count_files(report['differing'])} from what is committed, which add_harness takes; "
            "--ref HEAD checks that"
        )
    return "\n".join([*files, *problems, *notes, summary_line(report)])
