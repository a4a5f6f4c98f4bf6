"""Making harnesses: a row, and a bare git repository with the first version on main, released as number 1."""

import re
from collections.abc import Mapping
from pathlib import Path

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import BrokenInput, LoopError
from evolution.loop.authors import author_of
from evolution.models import Harness, Release
from evolution.states import HarnessKind, ReleaseKind
from evolution.transitions import record
from harness_repo.errors import RepoExists
from harness_repo.harness import read_harness
from harness_repo.repository import MAIN, HarnessRepository
from harness_repo.starters import STARTERS, starter_files

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
# Files of a folder that is taken in as a harness; bigger ones are not part of one.
_MAX_FILE = 1_000_000


def create_harness(  # noqa: PLR0917  title and judge are passed by name everywhere
    actor: Actor,
    name: str,
    kind: str,
    files: Mapping[str, bytes],
    title: str = "",
    judge: Harness | None = None,
) -> Harness:
    """Create a harness whose first version has these files.

    Problems in the files are kept with them; only a harness without a readable harness.yaml is refused.
    """
    actor.require(Role.DEVELOPER)
    _check(name, kind, files, judge)
    with transaction.atomic():
        if Harness.objects.filter(name=name).exists():
            raise LoopError(_("there is a harness %(name)s already; choose another name") % {"name": name})
        harness = Harness.objects.create(name=name, kind=kind, title=title, judge=judge, path="")
        repository = _create_repository(actor, name, files)
        harness.path = repository.path.name
        harness.save(update_fields=["path"])
        _release_first(actor, harness, repository)
        record(actor, "harness.created", harness, kind=kind)
    return harness


def ensure_starter(actor: Actor, name: str) -> Harness:
    """Return the harness of this name; a starter is created when it is not there yet, with its judge.

    Raises LoopError when there is neither a harness nor a starter of that name.
    """
    harness = Harness.objects.filter(name=name).first()
    if harness is not None:
        return harness
    if name not in STARTERS:
        known = ", ".join(Harness.objects.order_by("name").values_list("name", flat=True)) or "none"
        text = _("there is no harness %(name)s; known: %(known)s. Make one with `manage.py add_harness`")
        raise LoopError(text % {"name": name, "known": known})
    files = starter_files(name)
    kind = HarnessKind(read_harness(files).kind)
    judge = ensure_starter(actor, "judge") if kind == HarnessKind.AGENT else None
    return create_harness(actor, name, kind, files, judge=judge)


def read_folder(folder: Path) -> dict[str, bytes]:
    """Read the files of a harness that lies in a folder; hidden files and symbolic links are left out."""
    if not folder.is_dir():
        raise BrokenInput(_("%(name)s is not a folder") % {"name": folder})
    files = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        if any(part.startswith(".") for part in relative.parts) or path.is_symlink() or not path.is_file():
            continue
        if path.stat().st_size <= _MAX_FILE:
            files[relative.as_posix()] = path.read_bytes()
    return files


def _check(name: str, kind: str, files: Mapping[str, bytes], judge: Harness | None) -> None:
    if not _NAME.fullmatch(name):
        text = _("%(name)r can't name a harness: lower-case letters, digits, - and _ only, 64 at most")
        raise LoopError(text % {"name": name})
    if judge is not None and judge.kind != HarnessKind.JUDGE:
        raise LoopError(_("%(name)s is not a judge") % {"name": judge.name})
    problems = [problem for problem in read_harness(files).problems if problem.code == "config_missing"]
    if problems or kind not in HarnessKind.values:
        unknown = _("there is no kind %(kind)s of harness") % {"kind": kind}
        raise BrokenInput(problems[0].message if problems else unknown)


def _create_repository(actor: Actor, name: str, files: Mapping[str, bytes]) -> HarnessRepository:
    """Take the first free folder: one may be left of a transaction that was rolled back."""
    root = Path(settings.REPOSITORIES_DIR)
    for number in range(1, 1000):
        path = root / (f"{name}.git" if number == 1 else f"{name}-{number}.git")
        try:
            return HarnessRepository.create(path, files, author=author_of(actor), message="First version")
        except RepoExists:
            continue
    raise LoopError(_("there is no free folder for %(name)s in the repositories") % {"name": name})


def _release_first(actor: Actor, harness: Harness, repository: HarnessRepository) -> None:
    commit = repository.resolve(MAIN)
    repository.tag("release/1", commit, "First version", author_of(actor))
    Release.objects.create(
        harness=harness,
        number=1,
        kind=ReleaseKind.INITIAL,
        commit=commit,
        tag="release/1",
        actor=actor.name,
        reason="first version",
    )
