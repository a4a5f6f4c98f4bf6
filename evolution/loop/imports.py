"""Stage 1: an import and its life: records are stored in batches, each together with how far the import is.

So it can be killed at any moment and gone on with: what is stored is counted, and what is not is read again. Finding
out formats and reading files is the work of `adapters.formats`.
"""

import gc
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Protocol

from django.db import DatabaseError, InterfaceError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import ImportTaken
from evolution.loop.bulk_writing import analyse_new
from evolution.loop.cases import BATCH, COUNTS, ImportReport, store_batch, take_ids
from evolution.loop.failure_rules import FILES, FailureRule, from_json
from evolution.loop.import_locks import hold_import
from evolution.loop.locks import lock_harness
from evolution.loop.masking import Masker
from evolution.loop.record_ids import RecordIds
from evolution.models import FailureCase, Harness, ImportProblem, ImportRun, Sighting, Source
from evolution.ports import Found
from evolution.states import ImportState
from evolution.transitions import move, record

# States in which something of an import is left to do.
UNFINISHED = (ImportState.QUEUED, ImportState.RUNNING, ImportState.FAILED)


class RecordFile(Protocol):
    """A file's records as a reader hands them over, in the same order every time."""

    @property
    def name(self) -> str:
        """The file's name as people are shown it."""

    @property
    def format(self) -> str:
        """What it was found to be, once a record was read."""

    @property
    def unread(self) -> Iterator[Found]:
        """Its records, some of them unread."""


# Files whose formats an import remembers.
MOST_NAMED = 1000
MOST_LEFT_OUT = 100
_COLLECTIONS = gc.get_threshold()
# Opens all files of an import anew, from the first one on.
OpenFiles = Callable[[], Iterable[RecordFile]]
# Called after each batch.
Progress = Callable[[ImportRun], None]


@dataclass(frozen=True)
class ImportOptions:
    """How files are read, and what of them becomes a case."""

    format: str = "auto"
    # our field -> theirs
    mapping: dict[str, str] = field(default_factory=dict)
    rule: FailureRule = FILES
    only_failures: bool = True

    def to_json(self) -> dict[str, Any]:
        """As `ImportRun.options` keeps them."""
        return {
            "format": self.format,
            "mapping": dict(self.mapping),
            "rule": self.rule.to_json(),
            "only_failures": self.only_failures,
        }


def read_options(options: dict[str, Any]) -> ImportOptions:
    """Read what `ImportRun.options` keeps."""
    return ImportOptions(
        format=options.get("format") or "auto",
        mapping=options.get("mapping") or {},
        rule=from_json(options.get("rule") or {}),
        only_failures=options.get("only_failures", True),
    )


def create_import(
    actor: Actor,
    harness: Harness,
    files: list[dict[str, Any]],
    options: ImportOptions,
    *,
    digest: str,
    source: Source | None = None,
    state: ImportState = ImportState.QUEUED,
) -> ImportRun:
    """Make the record of an import that is about to begin."""
    return ImportRun.objects.create(
        harness=harness,
        source=source,
        state=state,
        files=files,
        options=options.to_json(),
        digest=digest,
        created_by=actor.name,
    )


def find_unfinished(harness: Harness, digest: str) -> list[ImportRun]:
    """Imports of the same content with the same options that did not come to an end, newest first."""
    return list(ImportRun.objects.filter(harness=harness, digest=digest, state__in=UNFINISHED))


def perform_import(
    actor: Actor,
    run: ImportRun,
    open_files: OpenFiles,
    masker: Masker,
    progress: Progress = lambda _run: None,
) -> None:
    """Do what is left of an import, to its end.

    Raises ImportTaken when another process is at it, and what reading raises; what was stored until then is counted,
    and the same call goes on from there. After an error the import is failed, and says why.
    """
    with hold_import(run):
        run.refresh_from_db()
        if run.state == ImportState.FINISHED:
            return
        _begin(actor, run)
        try:
            with _few_collections():
                _Work(actor, run, masker, progress).do(open_files())
        except ImportTaken:
            raise
        except Exception as error:
            # What is said of a record may quote it.
            _fail(actor, run, masker.mask_text(str(error) or type(error).__name__))
            raise
        _finish(actor, run)


def note_left_out(run: ImportRun, names: Sequence[str], masker: Masker) -> None:
    """Keep which files held no records, for people to see whether one of them should have."""
    if names:
        shown = [masker.mask_text(name) for name in names[:MOST_LEFT_OUT]]
        run.left_out = {"count": len(names), "names": shown}
        run.save(update_fields=["left_out"])


@contextmanager
def _few_collections() -> Iterator[None]:
    """Have Python look less often for garbage in cycles: a batch has none, and it takes a sixth of the time."""
    gc.set_threshold(400_000, 50)
    try:
        yield
    finally:
        gc.set_threshold(*_COLLECTIONS)


def _begin(actor: Actor, run: ImportRun) -> None:
    if run.state != ImportState.RUNNING:
        move(run, ImportState.RUNNING, actor, message="", heartbeat_at=timezone.now())
    else:
        with transaction.atomic():
            record(actor, "importrun.resumed", run, **run.position)


def _fail(actor: Actor, run: ImportRun, reason: str) -> None:
    """Say why; where the database is away that is left to whoever goes on with it."""
    with suppress(DatabaseError, InterfaceError):
        move(run, ImportState.FAILED, actor, reason, message=reason)


@transaction.atomic
def _finish(actor: Actor, run: ImportRun) -> None:
    move(run, ImportState.FINISHED, actor, finished_at=timezone.now())
    run.refresh_from_db()
    figures = {name: getattr(run, name) for name in COUNTS}
    record(actor, "harness.cases_imported", run.harness, **{"import": run.pk, **figures})


class _Work:
    """The rest of an import: what is stored of it is skipped, and what is not is stored batch by batch."""

    def __init__(self, actor: Actor, run: ImportRun, masker: Masker, progress: Progress) -> None:
        self.actor, self.run, self.masker, self.progress = actor, run, masker, progress
        self.options = read_options(run.options)
        self.source_name = run.source.name if run.source else ""
        self.ids = RecordIds()
        self.file_index = int(run.position.get("file", 0))
        self.stored = int(run.position.get("record", 0))

    def do(self, files: Iterable[RecordFile]) -> None:
        for index, file in enumerate(files):
            records = iter(file.unread)
            stored = self._skip(index, records)
            name = ""
            while batch := list(islice(records, BATCH)):
                name = name or self.masker.mask_text(file.name)[:300]
                stored += len(batch)
                self._store(name, file.format, batch, {"file": index, "record": stored})

    def _skip(self, index: int, records: Iterator[Found]) -> int:
        """Pass over what is stored, for the ids that it took; returns how many records that were."""
        if index > self.file_index:
            return 0
        return take_ids(
            islice(records, self.stored) if index == self.file_index else records,
            self.ids,
            masker=self.masker,
            rule=self.options.rule,
            only_failures=self.options.only_failures,
            source_name=self.source_name,
        )

    def _store(self, file: str, fmt: str, batch: list[Found], position: dict[str, int]) -> None:
        """Store a batch, its counts and problems and the new position together, or nothing of it."""
        report = ImportReport()
        with transaction.atomic():
            self._take_turn()
            store_batch(
                self.actor,
                self.run.harness,
                batch,
                report,
                masker=self.masker,
                rule=self.options.rule,
                only_failures=self.options.only_failures,
                source_name=self.source_name,
                file=file,
                run=self.run,
                ids=self.ids,
            )
            self._note(report, position, _add_format(self.run.formats, file, fmt))
        analyse_new(FailureCase, Sighting)
        self.progress(self.run)

    def _take_turn(self) -> None:
        """Lock in the order of everybody else, and see that nobody has gone on with this import meanwhile."""
        lock_harness(self.run.harness)
        now = ImportRun.objects.select_for_update(no_key=True).only("position", "state").get(pk=self.run.pk)
        if now.position != self.run.position or now.state != ImportState.RUNNING:
            text = _("import %(number)d was gone on with by another process")
            raise ImportTaken(text % {"number": self.run.pk})

    def _note(self, report: ImportReport, position: dict[str, int], formats: dict[str, str]) -> None:
        run = self.run
        for name, value in report.counts().items():
            setattr(run, name, getattr(run, name) + value)
        run.masked = dict(Counter(run.masked) + report.masked)
        run.position, run.heartbeat_at = position, timezone.now()
        # It may be long.
        changed = ["formats"] if formats != run.formats else []
        run.formats = formats
        run.save(update_fields=[*COUNTS, *changed, "masked", "position", "heartbeat_at"])
        ImportProblem.objects.bulk_create(
            ImportProblem(run=run, **problem._asdict()) for problem in report.problems
        )


def _add_format(formats: dict[str, str], file: str, fmt: str) -> dict[str, str]:
    """Formats by the files' names, with one more; two files that are shown alike may have two."""
    known = formats.get(file, "")
    if fmt in known.split(", ") or (file not in formats and len(formats) >= MOST_NAMED):
        return formats
    return {**formats, file: f"{known}, {fmt}" if known else fmt}
