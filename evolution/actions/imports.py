"""What people do with files of failures: upload them, say how they are read, import them, go on with an import."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actions.sources import change_source
from evolution.actors import Actor, Role
from evolution.adapters import staged_files
from evolution.adapters.formats.detect import FileRecords, check_format, open_records, show_name
from evolution.adapters.formats.files import walk
from evolution.errors import BrokenInput, ImportTaken, LoopError
from evolution.loop.failure_rules import FILES, FailureRule, from_json
from evolution.loop.imports import (
    ImportOptions,
    Progress,
    create_import,
    find_unfinished,
    note_left_out,
    perform_import,
)
from evolution.loop.jobs import create_job
from evolution.loop.masking import current_masker
from evolution.loop.source_names import check_source_name
from evolution.models import Harness, ImportRun, Job, Source
from evolution.states import ImportState, JobKind
from evolution.tasks.assigning import request_assignment
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import move, record

_CHUNK = 1 << 20


def import_paths(
    actor: Actor,
    harness: Harness,
    paths: Sequence[Path],
    options: ImportOptions | None = None,
    *,
    source: Source | None = None,
    progress: Progress = lambda _run: None,
) -> ImportRun:
    """Import files and folders here and now, and return what became of them.

    An import of the same content that was cut off is gone on with. Raises BrokenInput, before anything is stored,
    for a path that can't be opened or a format that there is none of; bad records are problems of the import.
    """
    actor.require(Role.DEVELOPER)
    options = options or ImportOptions()
    check_format(options.format)
    with _copy_pipes(paths) as copied:
        return _import_paths(actor, harness, copied, options, source=source, progress=progress)


def _import_paths(
    actor: Actor,
    harness: Harness,
    paths: Sequence[Path],
    options: ImportOptions,
    *,
    source: Source | None,
    progress: Progress,
) -> ImportRun:
    files = [_describe(path) for path in paths]
    digest = _digest_import(harness, files, options, source)
    left_out: list[str] = []

    def open_files() -> Iterator[FileRecords]:
        left_out.clear()
        for path in paths:
            yield from open_records(path, options.format, options.mapping, left_out.append)

    masker = current_masker()
    for file in files:
        file["name"] = masker.mask_text(file["name"])
    try:
        for known in find_unfinished(harness, digest):
            try:
                perform_import(actor, known, open_files, masker, progress)
            except ImportTaken:
                # Another process is at it; what it stores will be duplicates here.
                continue
            note_left_out(known, left_out, masker)
            return known
        run = create_import(actor, harness, files, options, digest=digest, source=source)
        perform_import(actor, run, open_files, masker, progress)
        note_left_out(run, left_out, masker)
    finally:
        request_assignment(harness)
    return run


@contextmanager
def _copy_pipes(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """The paths, with copies of those that can be read only once."""
    with ExitStack() as stack:
        yield [_copy_pipe(path, stack) if path.is_fifo() or path.is_socket() else path for path in paths]


def _copy_pipe(path: Path, stack: ExitStack) -> Path:
    copy = Path(stack.enter_context(TemporaryDirectory())) / path.name
    with path.open("rb") as pipe, copy.open("wb") as file:
        shutil.copyfileobj(pipe, file, _CHUNK)
    return copy


def count_import(
    actor: Actor,
    harness: Harness,
    paths: Sequence[Path],
    options: ImportOptions | None = None,
    *,
    source: Source | None = None,
    source_name: str = "",
    progress: Progress = lambda _run: None,
) -> tuple[ImportRun, list[dict[str, Any]]]:
    """What `import_paths` would come to, and its problems; nothing is changed.

    The harness and the source of that name need not be there. It is done, and undone: other imports of the harness
    wait meanwhile.
    """
    with transaction.atomic():
        if not harness.pk:
            harness.save()
        if source is None and source_name:
            source = ensure_source(actor, harness, source_name)
        run = import_paths(actor, harness, paths, options, source=source, progress=progress)
        problems = read_problems(run)
        transaction.set_rollback(True)
    return run, problems


def read_problems(run: ImportRun) -> list[dict[str, Any]]:
    """All rejected records of an import: file, line, number and reason."""
    return [dict(row) for row in run.problems.values("file", "line", "number", "reason")]


def _describe(path: Path) -> dict[str, Any]:
    """A path as `ImportRun.files` keeps it; raises BrokenInput when it can't be opened."""
    try:
        members = list(walk(path)) if path.is_dir() else [path]
        digest, size = hashlib.sha256(), 0
        for member in members:
            digest.update(os.fsencode(str(member.relative_to(path.parent))) + b"\0")
            size += _digest_file(member, digest)
    except OSError as error:
        what = {"name": show_name(path), "problem": error.strerror or error}
        raise BrokenInput(_("%(name)s can't be opened: %(problem)s") % what) from None
    return {"name": show_name(path), "size": size, "digest": digest.hexdigest()}


def _digest_file(path: Path, digest: Any) -> int:
    size = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return size


def _digest_import(
    harness: Harness, files: Sequence[dict[str, Any]], options: ImportOptions, source: Source | None
) -> str:
    """What makes two imports the same one."""
    what = [harness.pk, source and source.pk, [file["digest"] for file in files], options.to_json()]
    return hashlib.sha256(repr(what).encode()).hexdigest()


@transaction.atomic
def ensure_source(actor: Actor, harness: Harness, name: str) -> Source:
    """The source of that name, made if there is none; raises LoopError for a name that can't be one."""
    actor.require(Role.DEVELOPER)
    if "\0" in name or not Source.objects.filter(harness=harness, name=name).exists():
        check_source_name(name)
    source, is_new = Source.objects.get_or_create(
        harness=harness, name=name, defaults={"created_by": actor.name}
    )
    if is_new:
        record(actor, "source.created", source, name=name)
    return source


def remember_settings(actor: Actor, source: Source, options: ImportOptions) -> None:
    """Have imports of a source read like this from now on, where they do not say otherwise."""
    change_source(actor, source, fmt=options.format, rule=options.rule, mapping=dict(options.mapping))


def options_for(source: Source | None, *, rule: FailureRule | None = None, **given: Any) -> ImportOptions:
    """How files of a source are read: what is given, else what the source says, else the defaults."""
    known: dict[str, Any] = {"rule": FILES}
    if source is not None:
        known = {"format": source.format, "mapping": source.mapping, "rule": from_json(source.rule)}
    wanted = {name: value for name, value in given.items() if value not in (None, "", {})}
    return ImportOptions(**{**known, **wanted, **({"rule": rule} if rule else {})})


@transaction.atomic
def stage_uploads(actor: Actor, harness: Harness, uploads: Sequence[staged_files.Upload]) -> ImportRun:
    """Keep uploads until a person has said how they are to be read."""
    actor.require(Role.DEVELOPER)
    if not uploads:
        raise LoopError(_("choose a file first"))
    files = staged_files.stage(uploads)
    masker = current_masker()
    for file in files:
        file["name"] = masker.mask_text(file["name"])
    return create_import(actor, harness, files, ImportOptions(), digest="", state=ImportState.PREVIEW)


@transaction.atomic
def start_import(
    actor: Actor, run: ImportRun, options: ImportOptions, *, source: Source | None = None
) -> Job:
    """Import uploads as they were previewed, by a worker."""
    actor.require(Role.DEVELOPER)
    check_format(options.format)
    for file in run.files:
        staged_files.staged_path(file)
    digest = _digest_import(run.harness, run.files, options, source)
    move(
        run,
        ImportState.QUEUED,
        actor,
        options=options.to_json(),
        source_id=source and source.pk,
        digest=digest,
    )
    return _enqueue(actor, run)


@transaction.atomic
def resume_import(actor: Actor, run: ImportRun) -> Job:
    """Go on with an import of uploads that failed, or whose worker is gone, where it was."""
    actor.require(Role.DEVELOPER)
    if run.state not in {ImportState.FAILED, ImportState.RUNNING, ImportState.QUEUED}:
        raise LoopError(_("there is nothing of this import to go on with"))
    for file in run.files:
        staged_files.staged_path(file)
    if run.state == ImportState.FAILED:
        move(run, ImportState.QUEUED, actor)
    return _enqueue(actor, run)


def _enqueue(actor: Actor, run: ImportRun) -> Job:
    job, _is_new = create_job(actor, run.harness, JobKind.IMPORT, run.pk)
    enqueue_job(job)
    return job


@transaction.atomic
def discard_import(actor: Actor, run: ImportRun) -> None:
    """Throw uploads away that were not imported."""
    actor.require(Role.DEVELOPER)
    if run.state != ImportState.PREVIEW:
        raise LoopError(_("this import was started; it can't be thrown away"))
    record(actor, "importrun.discarded", run)
    files = list(run.files)
    run.delete()
    transaction.on_commit(lambda: staged_files.remove(files))
