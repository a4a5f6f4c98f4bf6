"""Stage 1: records of an import become failure cases in the inbox; results of an evaluation: `loop.taken_failures`.

Knows identity (same source id, same content) and counts; reading files is the work of `adapters.formats`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, NamedTuple

from django.db import DataError, transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.loop.bulk_writing import insert_rows, update_rows
from evolution.loop.case_content import CONTENT, build_content
from evolution.loop.failure_rules import FILES, FailureRule
from evolution.loop.locks import lock_harness
from evolution.loop.masking import Masker
from evolution.loop.record_ids import RecordIds
from evolution.loop.search_text import store_texts
from evolution.models import FailureCase, Harness, ImportRun, Sighting
from evolution.ports import Record, Rejected
from evolution.states import CaseState
from evolution.transitions import move

# Records that are looked up and written together.
BATCH = 500
COUNTS = ("read", "new", "updated", "duplicate", "passed", "rejected")
# What is looked at of a known case; its content stays in the database.
_KNOWN = (
    "id", "harness_id", "source", "source_id", "state", "fingerprint", "content_digest", "is_pinned", "count",
)  # fmt: skip
_UPDATED = (*CONTENT, "import_run", "place", "embedded_text", "cluster", "strength")


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

    def add(self, part: "ImportReport") -> None:
        """Take in what became of some more."""
        for name in COUNTS:
            setattr(self, name, getattr(self, name) + getattr(part, name))
        self.problems += part.problems
        self.masked += part.masked

    def counts(self) -> dict[str, int]:
        """The six figures."""
        return {name: getattr(self, name) for name in COUNTS}


def store_records(
    actor: Actor,
    harness: Harness,
    records: Iterable[Record | Rejected],
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
    items: Sequence[Record | Rejected],
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
    sorter = _Sorter(report, masker, rule, source_name, file, ids or RecordIds(), only_failures=only_failures)
    taken = [taken for item in items if (taken := sorter.take(item))]
    with transaction.atomic():
        # Two imports at once would both miss the other's cases.
        lock_harness(harness)
        _store(actor, harness, taken, report, run)


def _store(
    actor: Actor, harness: Harness, taken: Sequence["Taken"], report: ImportReport, run: ImportRun | None
) -> None:
    """Store what was taken; where the database refuses that, find out which record it is, and reject that alone."""
    if not taken:
        return
    part = ImportReport()
    try:
        with transaction.atomic():
            _Batch(actor, harness, part, run).store(taken)
    except (DataError, ValueError, RecursionError) as error:
        if len(taken) == 1:
            _refuse(taken[0], error, report)
            return
        half = len(taken) // 2
        for some in (taken[:half], taken[half:]):
            _store(actor, harness, some, report, run)
        return
    report.add(part)


def _refuse(item: "Taken", error: Exception, report: ImportReport) -> None:
    report.rejected += 1
    reason = _("the database can't store it (%(problem)s)") % {"problem": type(error).__name__}
    report.problems.append(Problem(item.place.get("file", ""), item.record.line, 0, reason))


class Taken(NamedTuple):
    """A record that is to be stored, masked, with its symptom; and where it stood."""

    record: Record
    masked: dict[str, int]
    place: dict[str, Any]


@dataclass
class _Sorter:
    """Counts what is rejected and what passed, and makes the rest ready to be stored."""

    report: ImportReport
    masker: Masker
    rule: FailureRule
    source_name: str
    file: str
    ids: RecordIds
    only_failures: bool

    def take(self, item: Record | Rejected) -> Taken | None:
        self.report.read += 1
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
        masked, hits = self.masker.mask_item(item)
        if isinstance(masked, Rejected):
            self._reject(masked)
            return None
        if not masked.symptom:
            masked = replace(masked, symptom="\n".join(self.rule.judge(masked).reasons))
        return Taken(masked, hits, {"file": self.file, "line": item.line} if self.file else {})

    def _reject(self, item: Rejected) -> None:
        rejected = self.masker.mask_rejected(item)
        self.report.rejected += 1
        self.report.problems.append(Problem(self.file, rejected.line, rejected.number, rejected.reason))


class _Batch:
    """Some records looked up with three queries and written with a few."""

    def __init__(
        self, actor: Actor, harness: Harness, report: ImportReport, run: ImportRun | None = None
    ) -> None:
        self.actor, self.harness, self.report, self.run = actor, harness, report, run
        self.by_id: dict[tuple[str, str], FailureCase] = {}
        self.by_fingerprint: dict[str, FailureCase] = {}
        self.sightings: dict[tuple[str, str], Sighting] = {}
        self.new: list[FailureCase] = []
        # fingerprints of these
        self.fresh: set[str] = set()
        self.updated: dict[int, FailureCase] = {}
        # a case, and under which source and id it was seen
        self.new_sightings: list[tuple[FailureCase, tuple[str, str]]] = []
        self.gone_sightings: list[int] = []
        self.counts: Counter[int] = Counter()
        self.seen_again: dict[int, FailureCase] = {}

    def store(self, items: Sequence[Taken]) -> None:
        """Sort the records into new, duplicate and updated, then write."""
        contents = [build_content(self.harness, item.record, masked=item.masked) for item in items]
        self._look_up([item.record for item in items], contents)
        for item, content in zip(items, contents, strict=True):
            self._sort(item, content)
        self._write()

    def _look_up(self, records: Sequence[Record], contents: Sequence[dict[str, Any]]) -> None:
        # The index has the source before the id.
        named = {
            "source__in": {item.source for item in records},
            "source_id__in": [item.source_id for item in records],
        }
        cases = FailureCase.objects.filter(harness=self.harness).only(*_KNOWN)
        self.by_id = {(case.source, case.source_id): case for case in cases.filter(**named)}
        fingerprints = [content["fingerprint"] for content in contents]
        twins = cases.filter(fingerprint__in=fingerprints).order_by("-pk")
        self.by_fingerprint = {case.fingerprint: case for case in twins}
        sightings = Sighting.objects.filter(harness=self.harness, **named).select_related("case")
        found = sightings.only(
            "harness_id", "source", "source_id", "case_id", *(f"case__{name}" for name in _KNOWN)
        )
        self.sightings = {(sighting.source, sighting.source_id): sighting for sighting in found}

    def _sort(self, item: Taken, content: dict[str, Any]) -> None:
        key = (item.record.source, item.record.source_id)
        known = self.by_id.get(key)
        if known is not None:
            self._sort_known(known, item, content)
            return
        sighting = self.sightings.get(key)
        if sighting is not None and sighting.case.fingerprint == content["fingerprint"]:
            self._hit("duplicate")
            return
        if sighting is not None:
            # It used to be identical to another case, and no longer is.
            self.gone_sightings.append(sighting.pk)
            self.counts[sighting.case_id] -= 1
        twin = self.by_fingerprint.get(content["fingerprint"])
        if twin is not None:
            self._count(twin, key)
        else:
            self._add(item, content)
        self._hit("updated" if sighting is not None else "duplicate" if twin is not None else "new", item)

    def _hit(self, outcome: str, item: Taken | None = None) -> None:
        """Count a record, and what was masked of it where it is written."""
        setattr(self.report, outcome, getattr(self.report, outcome) + 1)
        if item is not None:
            self.report.masked.update(item.masked)

    def _sort_known(self, known: FailureCase, item: Taken, content: dict[str, Any]) -> None:
        if _is_same(known, content):
            self._hit("duplicate")
            return
        for name, value in content.items():
            setattr(known, name, value)
        known.import_run, known.place = self.run, item.place
        embed_anew(known)
        self.updated[known.pk] = known
        self.seen_again[known.pk] = known
        self._hit("updated", item)

    def _count(self, twin: FailureCase, key: tuple[str, str]) -> None:
        self.new_sightings.append((twin, key))
        if twin.fingerprint in self.fresh:
            twin.count += 1
        else:
            self.counts[twin.pk] += 1
            self.seen_again[twin.pk] = twin

    def _add(self, item: Taken, content: dict[str, Any]) -> None:
        case = FailureCase(
            harness=self.harness,
            source=item.record.source,
            source_id=item.record.source_id,
            import_run=self.run,
            place=item.place,
            tags=list(dict.fromkeys(tag[:64] for tag in item.record.tags)),
            **content,
        )
        self.new.append(case)
        self.by_fingerprint[case.fingerprint] = case
        self.fresh.add(case.fingerprint)

    def _write(self) -> None:
        insert_rows(self.new)
        update_rows(self.updated.values(), _UPDATED)
        store_texts([*self.new, *self.updated.values()])
        Sighting.objects.filter(pk__in=self.gone_sightings).delete()
        insert_rows(
            [
                Sighting(harness=self.harness, case=case, source=source, source_id=source_id)
                for case, (source, source_id) in self.new_sightings
            ]
        )
        counted = list(FailureCase.objects.filter(pk__in=self.counts).only("count"))
        for case in counted:
            case.count += self.counts[case.pk]
        update_rows(counted, ["count"])
        for case in self.seen_again.values():
            reopen_seen_again(self.actor, case)


def _is_same(known: FailureCase, content: dict[str, Any]) -> bool:
    """Whether a case holds this content already; older versions stored no digest of all of it."""
    if known.content_digest:
        return bool(known.content_digest == content["content_digest"])
    return bool(known.fingerprint == content["fingerprint"])


def embed_anew(case: FailureCase) -> None:
    """Have a case whose content changed assigned to a cluster again; where people put it, it stays."""
    case.embedded_text = ""
    if not case.is_pinned:
        case.cluster, case.strength = None, None


def reopen_seen_again(actor: Actor, case: FailureCase) -> bool:
    """Open a resolved case again; an ignored one stays ignored."""
    if case.state != CaseState.RESOLVED:
        return False
    move(case, CaseState.OPEN, actor, "seen again")
    return True
