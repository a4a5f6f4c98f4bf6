"""Imports for their pages: the list, one with its problems, and the preview of one that waits for its settings."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Any, NamedTuple

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.utils import timezone

from evolution.adapters.formats.detect import look_at_table
from evolution.adapters.formats.mapping import FIELDS
from evolution.adapters.staged_files import open_staged, staged_path
from evolution.loop.case_content import request_text, shorten_title
from evolution.loop.failure_rules import Judgement, numbers
from evolution.loop.imports import ImportOptions
from evolution.loop.masking import Masker, MaskingError, current_masker
from evolution.models import Harness, ImportProblem, ImportRun, Source
from evolution.ports import Record, Rejected
from evolution.states import ImportState

PAGE_SIZE = 50
# Records that a preview shows, and those that it counts; of each file that many.
SHOWN = 20
COUNTED = 200
# Scores whose scale is pointed out.
MOST_LARGE = 5
# Fields that one column of a table can be.
_COLUMN_FIELDS = tuple(name for name in FIELDS if name not in {"scores", "context"})
# A running import shows a sign of life with every batch.
SILENCE = timedelta(seconds=60)
ACTIVE = (ImportState.QUEUED, ImportState.RUNNING)


def list_imports(harness: Harness, page: str | int = 1) -> Page[ImportRun]:
    """One page of imports, newest first; a page number out of range gives the nearest page."""
    runs = ImportRun.objects.filter(harness=harness).select_related("source")
    return Paginator(runs, PAGE_SIZE).get_page(page)


def list_problems(run: ImportRun, page: str | int = 1) -> Page[ImportProblem]:
    """One page of an import's problems, in the order of the files."""
    return Paginator(run.problems.all(), PAGE_SIZE).get_page(page)


def is_silent(run: ImportRun) -> bool:
    """Whether nobody seems to work on an import that has not ended."""
    since = run.heartbeat_at or run.created_at
    return run.state in ACTIVE and timezone.now() - since > SILENCE


def list_sources(harness: Harness) -> QuerySet[Source]:
    """The sources that an import can be booked under."""
    return Source.objects.filter(harness=harness)


class PreviewedRecord(NamedTuple):
    """A record as it will be stored: masked, with its title and what the rule says of it."""

    record: Record
    title: str
    judgement: Judgement
    # as pairs, as templates would look for a key called "items"
    scores: list[tuple[str, Any]]
    masked: list[tuple[str, int]]
    # whether it would become a case
    is_taken: bool


class PreviewedColumn(NamedTuple):
    """A column of a table, its first values, and the field of ours that it is; empty for none."""

    name: str
    values: list[str]
    field: str


class PreviewedTable(NamedTuple):
    """The columns of the first table among the uploads, and the fields that they can be."""

    name: str
    columns: list[PreviewedColumn]
    fields: tuple[str, ...]


class PreviewedProblem(NamedTuple):
    """A record among the first ones that would be rejected."""

    file: str
    line: int
    number: int
    reason: str


@dataclass
class Preview:
    """What an import of the first records would look like; nothing is stored, and duplicates are not looked for."""

    # file -> format
    formats: dict[str, str] = field(default_factory=dict)
    records: list[PreviewedRecord] = field(default_factory=list)
    problems: list[PreviewedProblem] = field(default_factory=list)
    read: int = 0
    taken: int = 0
    passed: int = 0
    rejected: int = 0
    # whether that is all there is
    is_whole: bool = True
    masked: Counter[str] = field(default_factory=Counter)
    # files that hold no records, and are not expected to
    left_out: list[str] = field(default_factory=list)
    # the highest value of each score, and those for which the rule seems to be none; see _find_large_scores
    highest: dict[str, float] = field(default_factory=dict)
    large_scores: list[tuple[str, float]] = field(default_factory=list)

    def list_formats(self) -> list[tuple[str, str]]:
        """Files and what they are."""
        return sorted(self.formats.items())

    def list_masked(self) -> list[tuple[str, int]]:
        """Masking rules and how often they struck what would be imported."""
        return sorted(self.masked.items())


def preview_import(run: ImportRun, options: ImportOptions) -> Preview:
    """Read the first records of each file of uploads that wait; raises LoopError when they can't be had."""
    preview, masker = Preview(), current_masker()
    for file in open_staged(run.files, options.format, options.mapping, preview.left_out.append):
        records = iter(file.records)
        for item in islice(records, COUNTED):
            _look(preview, masker, masker.mask_text(file.name), item, options)
        preview.formats[masker.mask_text(file.name)] = file.format
        preview.is_whole = preview.is_whole and not _has_more(records)
    preview.left_out = [masker.mask_text(name) for name in preview.left_out]
    preview.large_scores = _find_large_scores(preview, options)
    return preview


def _find_large_scores(preview: Preview, options: ImportOptions) -> list[tuple[str, float]]:
    """Scores on a scale beyond 1 for which the rule has no limit of its own: (name, highest), highest first."""
    named = {threshold.name.lower() for threshold in options.rule.thresholds}
    large = [(name, top) for name, top in preview.highest.items() if top > 1 and name.lower() not in named]
    return sorted(large, key=lambda each: -each[1])[:MOST_LARGE]


def look_at_columns(run: ImportRun, options: ImportOptions) -> PreviewedTable | None:
    """The columns of the first table among uploads that wait, and what they are taken for; None without a table."""
    masker = current_masker()
    for file in run.files:
        with staged_path(file).open("rb") as stream:
            table = look_at_table(stream, file["name"], options.mapping)
        if table is not None:
            taken = {column: field for field, column in {**table.guess, **options.mapping}.items() if column}
            columns = [
                _column(name, _mask_column(masker, name, values[:3]), taken) for name, values in table.samples
            ]
            fields = tuple(dict.fromkeys([*_COLUMN_FIELDS, *taken.values()]))
            return PreviewedTable(file["name"], columns, fields)
    return None


def _mask_column(masker: Masker, name: str, values: list[str]) -> list[str]:
    """Values of a column as records will have them: its name may give them away."""
    try:
        masked, _counts = masker.mask_value([{name: value} for value in values])
    except MaskingError as error:
        return [f"[{error}]"]
    return [str(next(iter(each.values()))) for each in masked]


def _column(name: str, values: list[str], taken: dict[str, str]) -> PreviewedColumn:
    return PreviewedColumn(name, values, taken.get(name, ""))


def _has_more(records: Iterator[Record | Rejected]) -> bool:
    return next(records, None) is not None


def _look(
    preview: Preview, masker: Masker, file: str, item: Record | Rejected, options: ImportOptions
) -> None:
    preview.read += 1
    hits: dict[str, int] = {}
    if isinstance(item, Record):
        try:
            item, hits = masker.mask_record(item)
        except MaskingError as error:
            item = Rejected(item.line, str(error))
    if isinstance(item, Rejected):
        preview.rejected += 1
        if len(preview.problems) < SHOWN:
            reason = masker.mask_text(item.reason)
            preview.problems.append(PreviewedProblem(file, item.line, item.number, reason))
        return
    for name, value in numbers(item.scores):
        preview.highest[name] = max(value, preview.highest.get(name, value))
    judgement = options.rule.judge(item)
    is_taken = judgement.failed or not options.only_failures
    preview.taken += is_taken
    preview.passed += not is_taken
    preview.masked.update(hits if is_taken else {})
    if len(preview.records) < SHOWN:
        text = request_text(item.request) or item.symptom or item.reply or item.source_id
        preview.records.append(
            PreviewedRecord(
                item,
                shorten_title(text),
                judgement,
                sorted(item.scores.items()),
                sorted(hits.items()),
                is_taken,
            )
        )
