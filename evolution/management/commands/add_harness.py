"""Makes a harness from a starter, from a folder, or from a git repository with its history."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from evolution.actions.harnesses import create_harness, ensure_starter, import_harness
from evolution.actors import SYSTEM
from evolution.errors import BrokenInput, LoopError
from evolution.loop.repositories import open_repository
from evolution.management.harness_report import build_report, count_files, problem_lines, summary_line
from evolution.models import Harness
from evolution.states import HarnessKind
from harness_repo.folder import Source, git_folder, read_source
from harness_repo.format.adoption import propose_harness
from harness_repo.format.harness import CONFIG, read_harness
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.problems import visible
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.refs import REMOTES, SOURCE_TAGS
from harness_repo.git.remotes import list_taken
from harness_repo.snapshot import Snapshot
from harness_repo.starters import STARTERS, starter_files

FAILED = 1


@dataclass(frozen=True)
class _Taken:
    """What was read, what was found in it, and the files that were added."""

    source: Source
    found: HarnessState
    additions: Mapping[str, bytes]


class Command(BaseCommand):
    """Creates the repository with the first version, and says what is wrong with the files."""

    help = "Make a harness: from a starter, from a folder, or from a git repository, whose history is kept."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("name")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--starter", choices=STARTERS)
        source.add_argument("--from", type=Path, dest="folder", metavar="FOLDER_OR_REPO")
        parser.add_argument("--ref", help="of a git repository: what becomes main; default: its HEAD")
        parser.add_argument("--kind", choices=HarnessKind.values, help="default: as harness.yaml says")
        parser.add_argument("--judge", help="the judge harness that scores it; default for agents: judge")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON object")
        lacking = parser.add_mutually_exclusive_group()
        lacking.add_argument(
            "--adopt",
            action="store_true",
            help="add the harness.yaml and prompt sections that check_harness --adopt shows",
        )
        lacking.add_argument(
            "--as-it-is",
            action="store_true",
            help="take a folder or a git repository without harness.yaml, of an agent with a runner of its own",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create it, and say what was taken in, as check_harness does."""
        try:
            harness, taken = self._add(options)
        except (LoopError, HarnessRepoError, OSError) as error:
            if not options["as_json"]:
                raise CommandError(str(error)) from None
            self.stdout.write(json.dumps({"error": str(error)}, indent=2))
            sys.exit(FAILED)
        target = str(options["folder"] or options["starter"])
        report = build_report(target, taken.source, taken.found, taken.additions)
        if options["as_json"]:
            branches, tags = list_taken(open_repository(harness))
            made = {"harness": harness.name, "path": harness.path, "branches": branches, "tags": tags}
            self.stdout.write(json.dumps({**made, **report, "kind": harness.kind}, indent=2))
            return
        for line in [*problem_lines(taken.found), *_notes(taken.source), *_notes_on_refs(harness)]:
            self.stderr.write(line)
        self.stdout.write(summary_line(report))
        self.stdout.write(f"made {harness.kind} {harness.name} in {harness.path}")

    def _add(self, options: dict[str, Any]) -> tuple[Harness, _Taken]:
        folder: Path | None = options["folder"]
        is_repository = folder is not None and git_folder(folder) is not None
        source = _read(folder, options["ref"], is_repository=is_repository, starter=options["starter"])
        additions = propose_harness(source.snapshot, options["name"]) if options["adopt"] else {}
        files = {**source.snapshot.files, **additions}
        if CONFIG not in files and not options["as_it_is"]:
            raise BrokenInput(_("there is no harness.yaml; --adopt adds one"))
        found = read_harness(replace(source.snapshot, files=files))
        taken = _Taken(source, found, additions)
        name, kind = options["name"], options["kind"] or found.kind
        judge = self._judge(kind, options["judge"])
        if folder is None or not is_repository:
            bare = options["as_it_is"]
            return create_harness(SYSTEM, name, kind, files, judge=judge, as_it_is=bare), taken
        kept = {"ref": options["ref"], "additions": additions, "judge": judge}
        return import_harness(SYSTEM, name, kind, folder, **kept), taken

    def _judge(self, kind: str, name: str | None) -> Harness | None:
        if kind == HarnessKind.JUDGE:
            return None
        return ensure_starter(SYSTEM, name or "judge")


def _notes(source: Source) -> list[str]:
    notes = [visible(f"note: {source.note}")] if source.note else []
    if source.differing:
        notes.append(
            f"warning: {count_files(source.differing)} from HEAD; only what is committed was taken in"
        )
    return notes


def _notes_on_refs(harness: Harness) -> list[str]:
    """Where the branches and tags of an imported repository stand: main and release/* are ours."""
    branches, tags = list_taken(open_repository(harness))
    places = ((branches, "branches", REMOTES), (tags, "tags", SOURCE_TAGS))
    return [
        visible(
            f"note: its {what} stand on {place}*, and are shown by their names ({names[0]}): {len(names)} in all"
        )
        for names, what, place in places
        if names
    ]


def _read(folder: Path | None, ref: str | None, *, is_repository: bool, starter: str) -> Source:
    """What is to be taken in: of a repository what is committed, whatever lies in its folder."""
    if folder is None:
        return Source(Snapshot(starter_files(starter)))
    source = read_source(folder, (ref or "HEAD") if is_repository else ref)
    if is_repository and ref is None:
        return replace(source, differing=read_source(folder).differing)
    return source
