"""Stage 1: some records of an import as failure cases: looked up, sorted into new and known, and written together."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from evolution.actors import Actor
from evolution.loop.bulk_writing import insert_rows, update_rows
from evolution.loop.case_content import CONTENT, build_content
from evolution.loop.cluster_states import regress
from evolution.loop.search_text import insert_texts, store_texts
from evolution.models import FailureCase, Harness, ImportRun, Sighting
from evolution.ports import Record
from evolution.states import CaseState
from evolution.transitions import move

# What is looked at of a known case; its content stays in the database.
_KNOWN = (
    "id", "harness_id", "source", "source_id", "state", "fingerprint", "content_digest", "is_pinned", "count",
)  # fmt: skip
_UPDATED = (*CONTENT, "import_run", "place", "raw_digest", "embedded_text", "cluster", "strength")

Key = tuple[str, str]


class Taken(NamedTuple):
    """A record that is to be stored, masked, with its symptom; and where it stood."""

    record: Record
    masked: dict[str, int]
    place: dict[str, Any]
    # see `write_fields`
    written: dict[str, str]
    # see `RawDigests`; "" where it was not put off to read it
    raw_digest: str = ""

    @property
    def key(self) -> Key:
        """What the record is known by."""
        return self.record.source, self.record.source_id


class CaseBatch:
    """Some records, no two of one source and id; the caller holds the harness's lock."""

    def __init__(self, actor: Actor, harness: Harness, run: ImportRun | None = None) -> None:
        self._actor, self._harness, self._run = actor, harness, run
        # how many are new, updated and duplicate; and what was masked in those that are written
        self.outcomes: Counter[str] = Counter()
        self.masked: Counter[str] = Counter()
        self._by_id: dict[Key, FailureCase] = {}
        # oldest first
        self._by_fingerprint: defaultdict[str, list[FailureCase]] = defaultdict(list)
        self._sightings: dict[Key, Sighting] = {}
        self._new: list[FailureCase] = []
        # of each of these; see `write_fields`
        self._written: list[dict[str, str]] = []
        self._updated: list[FailureCase] = []
        # cases that were seen under other ids too, and no longer say what these do: with the fingerprint they had
        self._parted: list[tuple[FailureCase, str]] = []
        # a case, and under which source and id it was seen
        self._new_sightings: list[tuple[FailureCase, Key]] = []
        self._gone_sightings: list[int] = []
        self._counts: Counter[int] = Counter()
        self._seen_again: dict[int, FailureCase] = {}

    def store(self, items: Sequence[Taken]) -> None:
        """Sort the records into new, duplicate and updated, then write."""
        contents = [
            build_content(self._harness, item.record, masked=item.masked, written=item.written)
            for item in items
        ]
        self._look_up(items, contents)
        pairs = list(zip(items, contents, strict=True))
        # What cases come to say is known before others are compared with them.
        for item, content in pairs:
            if item.key in self._by_id:
                self._sort_known(self._by_id[item.key], item, content)
        for item, content in pairs:
            if item.key not in self._by_id:
                self._sort_other(item, content)
        self._write()

    def _look_up(self, items: Sequence[Taken], contents: Sequence[dict[str, Any]]) -> None:
        sources, ids = [item.record.source for item in items], [item.record.source_id for item in items]
        sightings = list(Sighting.objects.raw(_SIGHTINGS, [sources, ids, self._harness.pk]))
        given = {
            "harness": self._harness.pk,
            "sources": sources,
            "ids": ids,
            "fingerprints": [content["fingerprint"] for content in contents],
            "cases": [sighting.case_id for sighting in sightings],
        }
        # One object for each case, however it was found.
        cases = {case.pk: case for case in FailureCase.objects.raw(_CASES, given)}
        for case in cases.values():
            self._by_id[case.source, case.source_id] = case
            self._by_fingerprint[case.fingerprint].append(case)
        for sighting in sightings:
            sighting.case = cases[sighting.case_id]
            self._sightings[sighting.source, sighting.source_id] = sighting

    def _sort_known(self, known: FailureCase, item: Taken, content: dict[str, Any]) -> None:
        if _is_same(known, content):
            self.outcomes["duplicate"] += 1
            return
        before = known.fingerprint
        for name, value in content.items():
            setattr(known, name, value)
        known.import_run, known.place, known.raw_digest = self._run, item.place, item.raw_digest
        embed_anew(known)
        if known.fingerprint != before:
            self._by_fingerprint[before].remove(known)
            self._by_fingerprint[known.fingerprint].append(known)
            if known.count > 1:
                self._parted.append((known, before))
        self._updated.append(known)
        self._seen_again[known.pk] = known
        self._hit("updated", item)

    def _sort_other(self, item: Taken, content: dict[str, Any]) -> None:
        """A record that no case is named by: one that was seen as another case, or is now, or is new."""
        sighting = self._sightings.get(item.key)
        if sighting is not None and sighting.case.fingerprint == content["fingerprint"]:
            self.outcomes["duplicate"] += 1
            return
        if sighting is not None:
            # It used to be identical to another case, and no longer is.
            self._gone_sightings.append(sighting.pk)
            self._counts[sighting.case_id] -= 1
        twins = self._by_fingerprint[content["fingerprint"]]
        if not twins:
            self._add(item, content)
            self._hit("new", item)
            return
        self._count(twins[0], item.key)
        self._hit("duplicate" if sighting is None else "updated", item)

    def _hit(self, outcome: str, item: Taken) -> None:
        """Count a record that is written."""
        self.outcomes[outcome] += 1
        self.masked.update(item.masked)

    def _count(self, twin: FailureCase, key: Key) -> None:
        self._new_sightings.append((twin, key))
        if not twin.pk:
            twin.count += 1
        else:
            self._counts[twin.pk] += 1
            self._seen_again[twin.pk] = twin

    def _add(self, item: Taken, content: dict[str, Any]) -> None:
        case = FailureCase(
            harness=self._harness,
            source=item.record.source,
            source_id=item.record.source_id,
            import_run=self._run,
            place=item.place,
            raw_digest=item.raw_digest,
            tags=list(dict.fromkeys(tag[:64] for tag in item.record.tags)),
            **content,
        )
        self._new.append(case)
        self._written.append(item.written)
        self._by_fingerprint[case.fingerprint].append(case)

    def _write(self) -> None:
        insert_rows(self._new, self._written)
        insert_texts(self._new)
        Sighting.objects.filter(pk__in=self._gone_sightings).delete()
        for known, before in self._parted:
            self._part(known, before)
        update_rows(self._updated, _UPDATED)
        store_texts(self._updated)
        insert_rows(
            [
                Sighting(harness=self._harness, case=case, source=source, source_id=source_id)
                for case, (source, source_id) in self._new_sightings
            ]
        )
        counted = list(FailureCase.objects.filter(pk__in=self._counts).only("count"))
        for case in counted:
            case.count += self._counts[case.pk]
        update_rows(counted, ["count"])
        reopen_seen_again(self._actor, self._seen_again.values())

    def _part(self, known: FailureCase, before: str) -> None:
        """Have those that were seen as a case keep what it said; it is about to be written over."""
        left = list(Sighting.objects.filter(case_id=known.pk).order_by("pk"))
        if not left:
            return
        self._counts[known.pk] -= len(left)
        twins = self._by_fingerprint[before]
        if not twins:
            twins.append(_copy_as(known.pk, left.pop(0)))
        self._counts[twins[0].pk] += len(left)
        Sighting.objects.filter(pk__in=[sighting.pk for sighting in left]).update(case=twins[0])


# One by one by the indexes, see `raw_digests`.
_SIGHTINGS = """
SELECT found.* FROM unnest(%s::text[], %s::text[]) AS wanted(source, source_id) CROSS JOIN LATERAL (
    SELECT id, harness_id, source, source_id, case_id FROM evolution_sighting AS stored
    WHERE harness_id = %s AND stored.source = wanted.source AND stored.source_id = wanted.source_id OFFSET 0
) AS found
"""
_CASES = """
SELECT found.* FROM unnest(%(sources)s::text[], %(ids)s::text[]) AS wanted(source, source_id) CROSS JOIN LATERAL (
    SELECT {0} FROM evolution_failurecase AS stored
    WHERE harness_id = %(harness)s AND stored.source = wanted.source AND stored.source_id = wanted.source_id OFFSET 0
) AS found
UNION SELECT found.* FROM unnest(%(fingerprints)s::text[]) AS wanted CROSS JOIN LATERAL (
    SELECT {0} FROM evolution_failurecase WHERE harness_id = %(harness)s AND fingerprint = wanted OFFSET 0
) AS found
UNION SELECT {0} FROM evolution_failurecase WHERE id = ANY(%(cases)s::bigint[])
ORDER BY id
""".format(", ".join(_KNOWN))  # noqa: S608  names of fields


def _is_same(known: FailureCase, content: dict[str, Any]) -> bool:
    """Whether a case holds this content already; older versions stored no digest of all of it."""
    if known.content_digest:
        return bool(known.content_digest == content["content_digest"])
    return bool(known.fingerprint == content["fingerprint"])


def _copy_as(pk: int, sighting: Sighting) -> FailureCase:
    """Make a case of what a case says still, under the id of one of its sightings, which is no longer one."""
    case = FailureCase.objects.get(pk=pk)
    case.pk, case._state.adding = None, True  # noqa: SLF001  as Django's documentation has it
    case.source, case.source_id, case.count = sighting.source, sighting.source_id, 1
    case.raw_digest, case.place, case.import_run = "", {}, None
    insert_rows([case])
    insert_texts([case])
    sighting.delete()
    return case


def embed_anew(case: FailureCase) -> None:
    """Have a case whose content changed assigned to a cluster again; where people put it, it stays."""
    case.embedded_text = ""
    if not case.is_pinned:
        case.cluster, case.strength = None, None


def reopen_seen_again(actor: Actor, cases: Iterable[FailureCase]) -> int:
    """Open resolved cases again, and return how many that were; ignored ones stay ignored.

    A resolved cluster that one of them is in regresses.
    """
    resolved = [case.pk for case in cases if case.state == CaseState.RESOLVED]
    if not resolved:
        return 0
    # People may have moved them since they were read.
    locked = FailureCase.objects.select_for_update(no_key=True).filter(
        pk__in=resolved, state=CaseState.RESOLVED
    )
    found = list(locked.only(*_KNOWN).order_by("pk"))
    for case in found:
        move(case, CaseState.OPEN, actor, "seen again")
    clusters = FailureCase.objects.filter(pk__in=[case.pk for case in found], cluster__isnull=False)
    regress(actor, set(clusters.values_list("cluster_id", flat=True)))
    return len(found)
