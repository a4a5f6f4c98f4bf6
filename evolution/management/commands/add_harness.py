"""Makes a harness from a starter, from a folder, or from a git repository with its history."""

from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils.translation import gettext as _

from evolution.actions.harnesses import create_harness, ensure_starter, import_harness
from evolution.actors import SYSTEM
from evolution.errors import BrokenInput, LoopError
from evolution.models import Harness
from evolution.states import HarnessKind
from harness_repo.folder import git_folder, read_source
from harness_repo.format.adoption import propose_harness
from harness_repo.format.harness import CONFIG, read_harness
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.problems import format_problem
from harness_repo.git.errors import HarnessRepoError
from harness_repo.snapshot import Snapshot
from harness_repo.starters import STARTERS, starter_files


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
        lacking = parser.add_mutually_exclusive_group()
        lacking.add_argument(
            "--adopt",
            action="store_true",
            help="add the harness.yaml and prompt sections that check_harness --adopt shows",
        )
        lacking.add_argument(
            "--as-it-is",
            action="store_true",
            help="take a git repository without harness.yaml, of an agent with a runner of its own",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Create it."""
        try:
            harness, found = self._add(options)
        except (LoopError, HarnessRepoError) as error:
            raise CommandError(str(error)) from None
        for problem in found.problems:
            self.stderr.write(format_problem(problem))
        self.stdout.write(f"made {harness.kind} {harness.name} in {harness.path}")

    def _add(self, options: dict[str, Any]) -> tuple[Harness, HarnessState]:
        folder: Path | None = options["folder"]
        is_repository = folder is not None and git_folder(folder) is not None
        snapshot = _read(folder, options["ref"], is_repository=is_repository, starter=options["starter"])
        additions = propose_harness(snapshot, options["name"]) if options["adopt"] else {}
        snapshot = replace(snapshot, files={**snapshot.files, **additions})
        if CONFIG not in snapshot.files and not (options["as_it_is"] and is_repository):
            raise BrokenInput(_("there is no harness.yaml; --adopt adds one"))
        found = read_harness(snapshot)
        name, kind = options["name"], options["kind"] or found.kind
        judge = self._judge(kind, options["judge"])
        if folder is None or not is_repository:
            return create_harness(SYSTEM, name, kind, snapshot.files, judge=judge), found
        kept = {"ref": options["ref"], "additions": additions, "judge": judge}
        return import_harness(SYSTEM, name, kind, folder, **kept), found

    def _judge(self, kind: str, name: str | None) -> Harness | None:
        if kind == HarnessKind.JUDGE:
            return None
        return ensure_starter(SYSTEM, name or "judge")


def _read(folder: Path | None, ref: str | None, *, is_repository: bool, starter: str) -> Snapshot:
    """What is to be taken in: of a repository what is committed, whatever lies in its folder."""
    if folder is None:
        return Snapshot(starter_files(starter))
    return read_source(folder, (ref or "HEAD") if is_repository else ref).snapshot
