"""Making harnesses: a row, and a bare git repository with the first version on main, released as number 1."""

import re
from collections.abc import Callable, Mapping
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
from harness_repo.format.harness import CONFIG, read_harness
from harness_repo.git.errors import RepoExists
from harness_repo.git.remotes import import_repository
from harness_repo.git.repository import MAIN, HarnessRepository
from harness_repo.starters import STARTERS, starter_files

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def create_harness(  # noqa: PLR0917  title and judge are passed by name everywhere
    actor: Actor,
    name: str,
    kind: str,
    files: Mapping[str, bytes],
    title: str = "",
    judge: Harness | None = None,
    *,
    as_it_is: bool = False,
) -> Harness:
    """Create a harness whose first version has these files.

    Problems in the files are kept with them; files without a harness.yaml are refused, unless they are to be taken as
    they are, for a runner of their own.
    """
    if CONFIG not in files and not as_it_is:
        raise BrokenInput(_("there is no harness.yaml"))

    def make(path: Path) -> HarnessRepository:
        return HarnessRepository.create(path, files, author=author_of(actor), message="First version")

    return _create(actor, Harness(name=name, kind=kind, title=title, judge=judge), make)


def import_harness(
    actor: Actor,
    name: str,
    kind: str,
    source: Path,
    *,
    ref: str | None = None,
    additions: Mapping[str, bytes] | None = None,
    judge: Harness | None = None,
) -> Harness:
    """Create a harness from a git repository, with its history: its `ref`, by default its HEAD, becomes main.

    `additions` are files that make a harness of it, as one more commit; without harness.yaml it is taken in as it is,
    for a runner of its own. Raises LoopError, and HarnessRepoError when the repository can't be read.
    """

    def make(path: Path) -> HarnessRepository:
        repository = import_repository(source, path, ref=ref)
        if additions:
            head = repository.resolve(MAIN)
            message = "Add what makes a harness of it"
            repository.commit(MAIN, additions, parent=head, author=author_of(actor), message=message)
        return repository

    return _create(actor, Harness(name=name, kind=kind, judge=judge), make)


def _create(actor: Actor, harness: Harness, make: Callable[[Path], HarnessRepository]) -> Harness:
    """Keep the row, its repository and its first release: all of them, or none that anybody sees."""
    actor.require(Role.DEVELOPER)
    _check(harness)
    with transaction.atomic():
        if Harness.objects.filter(name=harness.name).exists():
            text = _("there is a harness %(name)s already; choose another name")
            raise LoopError(text % {"name": harness.name})
        harness.path = ""
        harness.save()
        repository = _create_repository(harness.name, make)
        harness.path = repository.path.name
        harness.save(update_fields=["path"])
        _release_first(actor, harness, repository)
        record(actor, "harness.created", harness, kind=harness.kind)
    return harness


def ensure_starter(actor: Actor, name: str) -> Harness:
    """Return the harness of this name; a starter is created when it is not there yet, with its judge.

    Raises LoopError when there is neither a harness nor a starter of that name.
    """
    harness = find_starter(name)
    if harness.pk:
        return harness
    kind = HarnessKind(harness.kind)
    judge = ensure_starter(actor, "judge") if kind == HarnessKind.AGENT else None
    return create_harness(actor, name, kind, starter_files(name), judge=judge)


def find_starter(name: str) -> Harness:
    """The harness of this name, or the one that `ensure_starter` would create, not stored; raises LoopError."""
    harness = Harness.objects.filter(name=name).first()
    if harness is not None:
        return harness
    if name not in STARTERS:
        known = ", ".join(Harness.objects.order_by("name").values_list("name", flat=True)) or "none"
        text = _("there is no harness %(name)s; known: %(known)s. Make one with `manage.py add_harness`")
        raise LoopError(text % {"name": name, "known": known})
    return Harness(name=name, kind=HarnessKind(read_harness(starter_files(name)).kind))


def _check(harness: Harness) -> None:
    if not _NAME.fullmatch(harness.name):
        text = _("%(name)r can't name a harness: lower-case letters, digits, - and _ only, 64 at most")
        raise LoopError(text % {"name": harness.name})
    if harness.judge is not None and harness.judge.kind != HarnessKind.JUDGE:
        raise LoopError(_("%(name)s is not a judge") % {"name": harness.judge.name})
    if harness.kind not in HarnessKind.values:
        raise BrokenInput(_("there is no kind %(kind)s of harness") % {"kind": harness.kind})


def _create_repository(name: str, make: Callable[[Path], HarnessRepository]) -> HarnessRepository:
    """Take the first free folder: one may be left of a transaction that was rolled back."""
    root = Path(settings.REPOSITORIES_DIR)
    for number in range(1, 1000):
        path = root / (f"{name}.git" if number == 1 else f"{name}-{number}.git")
        try:
            return make(path)
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
