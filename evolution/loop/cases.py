"""Stage 1: records of an import become failure cases in the inbox; results of an evaluation: `loop.taken_failures`.

Knows identity (same source id, same content) and counts; reading files is the work of `adapters.formats`.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import NamedTuple

from django.db import DataError, transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.loop.case_batches import CaseBatch, Taken
from evolution.loop.case_content import write_fields
from evolution.loop.failure_rules import FILES, FailureRule
from evolution.loop.locks import lock_harness
from evolution.loop.masking import Masker
from evolution.loop.raw_digests import RawDigests, look_up
from evolution.loop.record_ids import RecordIds, name_source, shorten_id
from evolution.models import Harness, ImportRun
from evolution.ports import Found, Record, Rejected, Unread

# Records that are looked up and written together.
BATCH = 500
COUNTS = ("read", "new", "updated", "duplicate", "passed", "rejected")


class Problem(NamedTuple):
    """A rejected record: file, physical line, place among several on that line or 0, and why."""

    file: str
    line: int
    number: int
    reason: str


@dataclass
class ImportReport:
    """What became of the records of an import; `read` is the sum of the five below it."""

    read: int = 0
    new: int = 0
    updated: int = 0
    duplicate: int = 0
    passed: int = 0
    rejected: int = 0
    problems: list[Problem] = field(default_factory=list)
    # how often each masking rule struck
    masked: Counter[str] = field(default_factory=Counter)

    def count(self, outcomes: Mapping[str, int], masked: Counter[str]) -> None:
        """Take in what became of some more."""
        for name, value in outcomes.items():
            setattr(self, name, getattr(self, name) + value)
        self.masked += masked

    def counts(self) -> dict[str, int]:
        """The six figures."""
        return {name: getattr(self, name) for name in COUNTS}


def store_records(
    actor: Actor,
    harness: Harness,
    records: Iterable[Found],
    report: ImportReport,
    *,
    masker: Masker,
    file: str = "",
    rule: FailureRule = FILES,
    only_failures: bool = True,
) -> None:
    """Store records batch by batch, each in a transaction of its own; see `store_batch`."""
    ids, left = RecordIds(), iter(records)
    while batch := list(islice(left, BATCH)):
        store_batch(
            actor, harness, batch, report,
            masker=masker, file=file, rule=rule, only_failures=only_failures, ids=ids,
        )  # fmt: skip


def store_batch(
    actor: Actor,
    harness: Harness,
    items: Sequence[Found],
    report: ImportReport,
    *,
    masker: Masker,
    rule: FailureRule = FILES,
    only_failures: bool = True,
    source_name: str = "",
    file: str = "",
    run: ImportRun | None = None,
    ids: RecordIds | None = None,
) -> None:
    """Take some records into the inbox, all in one transaction, adding to the report.

    The same id with the same content is a duplicate, with other content an update. The same failure under
    another id is counted on the case that is there. A resolved case that is seen again is open again; an
    ignored one stays so. Nothing is stored that `masker` has not seen. `ids` are those of the import that the records
    are a part of; `source_name` is what they are booked under in place of their format.
    """
    known = look_up(harness, items, source_name)
    sorter = _Sorter(
        report, masker, rule, source_name, file, ids or RecordIds(), known, only_failures=only_failures
    )
    taken = [taken for item in items if (taken := sorter.take(item))]
    with transaction.atomic():
        # Two imports at once would both miss the other's cases.
        lock_harness(harness)
        _store(actor, harness, taken, report, run)


def take_ids(
    items: Iterable[Found],
    ids: RecordIds,
    *,
    masker: Masker,
    rule: FailureRule,
    only_failures: bool,
    source_name: str = "",
) -> int:
    """Pass over records that are stored already, for the ids that they took; returns how many they are."""
    sorter = _Sorter(ImportReport(), masker, rule, source_name, "", ids, {}, only_failures=only_failures)
    for item in items:
        sorter.take(item)
    return sorter.report.read


def _store(
    actor: Actor, harness: Harness, taken: Sequence[Taken], report: ImportReport, run: ImportRun | None
) -> None:
    """Store what was taken; where the database refuses that, find out which record it is, and reject that alone."""
    if not taken:
        return
    batch = CaseBatch(actor, harness, run)
    try:
        with transaction.atomic():
            batch.store(taken)
    except (DataError, ValueError, RecursionError) as error:
        if len(taken) == 1:
            _refuse(taken[0], error, report)
            return
        half = len(taken) // 2
        for some in (taken[:half], taken[half:]):
            _store(actor, harness, some, report, run)
        return
    report.count(batch.outcomes, batch.masked)


def _refuse(item: Taken, error: Exception, report: ImportReport) -> None:
    report.rejected += 1
    reason = _("the database can't store it (%(problem)s)") % {"problem": type(error).__name__}
    report.problems.append(Problem(item.place.get("file", ""), item.record.line, 0, reason))


@dataclass
class _Sorter:
    """Counts what is rejected, what passed and what is stored as it is, and makes the rest ready to be stored."""

    report: ImportReport
    masker: Masker
    rule: FailureRule
    source_name: str
    file: str
    ids: RecordIds
    # what cases keep of the texts that they were read from, by source and id
    known: dict[tuple[str, str], str]
    only_failures: bool

    def __post_init__(self) -> None:
        self.digests = RawDigests(self.masker, self.rule, only_failures=self.only_failures)

    def take(self, item: Found) -> Taken | None:
        self.report.read += 1
        if not isinstance(item, Unread):
            return self._take_read(item)
        digest = self.digests.digest(item)
        key = (name_source(item.source, self.source_name), shorten_id(item.source_id))
        # A second record of one id is told apart by what is in it.
        if self.known.get(key) == digest and self.ids.take(*key):
            self.report.duplicate += 1
            return None
        taken = self._take_read(item.read())
        return taken._replace(raw_digest=digest) if taken else None

    def _take_read(self, item: Record | Rejected) -> Taken | None:
        if isinstance(item, Rejected):
            self._reject(item)
            return None
        # Those that passed have their ids, too: another rule gives no record another id.
        item = self.ids.name(item, self.source_name)
        if self.only_failures and not self.rule.judge(item).failed:
            self.report.passed += 1
            return None
        return self._mask(item)

    def _mask(self, item: Record) -> Taken | None:
        written = write_fields(item)
        masked, hits = self.masker.mask_item(item, written)
        if isinstance(masked, Rejected):
            self._reject(masked)
            return None
        if masked is not item:
            written = write_fields(masked)
        if (masked.source, masked.source_id) != (item.source, item.source_id):
            # Two ways to write one number have one placeholder.
            masked = self.ids.name(masked)
        if not masked.symptom:
            masked = replace(masked, symptom="\n".join(self.rule.judge(masked).reasons))
        place = {"file": self.file, "line": item.line} if self.file else {}
        return Taken(masked, hits, place, written)

    def _reject(self, item: Rejected) -> None:
        rejected = self.masker.mask_rejected(item)
        self.report.rejected += 1
        self.report.problems.append(Problem(self.file, rejected.line, rejected.number, rejected.reason))
