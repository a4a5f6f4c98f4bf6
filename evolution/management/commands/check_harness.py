"""Says what is wrong with a harness or a repository of skills: a folder, a git repository, or one of the workbench.

A path needs no database. Exit code 0: no errors (there may be warnings); 1: errors; 2: it could not be checked.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evolution.loop.repositories import open_repository
from evolution.models import Harness
from harness_repo.folder import Source, read_source
from harness_repo.format.adoption import propose_harness
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.harness import read_harness
from harness_repo.format.problems import Problem, format_problem, visible
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
        """Check it, and print what was found."""
        try:
            source = find_source(options["target"], options["ref"])
            proposed = _propose(source, options["target"]) if options["adopt"] else {}
        except (HarnessRepoError, OSError) as error:
            raise CommandError(str(error), returncode=USAGE) from None
        snapshot = replace(source.snapshot, files={**source.snapshot.files, **proposed})
        harness = read_harness(snapshot)
        report = build_report(options["target"], source, harness, proposed)
        as_text = not options["json"]
        text = format_report(report, sort_problems(harness)) if as_text else json.dumps(report, indent=2)
        self.stdout.write(text)
        if report["errors"]:
            sys.exit(HAS_ERRORS)


def find_source(target: str, ref: str | None) -> Source:
    """What stands at a path, or in a harness of that name; CommandError with USAGE when there is neither."""
    # A path comes first: it is what needs no database.
    if Path(target).exists():
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


def build_report(
    target: str, source: Source, harness: HarnessState, proposed: Mapping[str, bytes]
) -> dict[str, Any]:
    """The object that `--json` prints; harness_repo/README.md documents it."""
    problems = sort_problems(harness)
    errors = sum(problem.is_error for problem in problems)
    return {
        "target": target,
        "commit": source.commit,
        "name": harness.name,
        "kind": harness.kind,
        "skill_folders": list(harness.skill_folders),
        "skills": len(harness.skills),
        "hooks": len(harness.hooks),
        "tools": len(harness.tools),
        "prompt_sections": len(harness.prompt),
        "errors": errors,
        "warnings": len(problems) - errors,
        "problems": [_problem_data(problem) for problem in problems],
        "proposed": {path: data.decode() for path, data in proposed.items()},
    }


def sort_problems(harness: HarnessState) -> list[Problem]:
    """By path, line and code."""
    return sorted(harness.problems, key=lambda problem: (problem.path, problem.line, problem.code))


def _problem_data(problem: Problem) -> dict[str, Any]:
    return {
        "path": problem.path,
        "line": problem.line,
        "severity": str(problem.severity),
        "code": problem.code,
        "message": problem.message,
        "hint": problem.hint,
    }


def format_report(report: Mapping[str, Any], problems: Sequence[Problem]) -> str:
    """The report as lines: proposed files, one line per problem, a summary."""
    files = [f"--- {path}\n{text}" for path, text in report["proposed"].items()]
    where = f" at {report['commit'][:12]}" if report["commit"] else ""
    counts = ", ".join(
        f"{report[part]} {part}" for part in ("skills", "hooks", "tools", "errors", "warnings")
    )
    return "\n".join(
        [*files, *map(format_problem, problems), visible(f"{report['target']}{where}: {counts}")]
    )
