"""Stage 1, for records that a source pushes: they are stored as those of an import, without its run."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from typing import Protocol

from django.db.models import Q
from django.utils import timezone

from evolution.actors import Actor, Role
from evolution.loop.cases import BATCH, ImportReport, store_batch
from evolution.loop.failure_rules import PUSHED, from_json
from evolution.loop.masking import Masker
from evolution.loop.record_ids import RecordIds
from evolution.models import Source
from evolution.ports import Record, Rejected

# A source's last sign of life is written no more often.
SEEN = timedelta(seconds=30)


class RecordFile(Protocol):
    """The records of a file, and what it was found to be."""

    @property
    def name(self) -> str:
        """As shown."""

    @property
    def format(self) -> str:
        """The format's name."""

    @property
    def records(self) -> Iterable[Record | Rejected]:
        """The records, to be read once."""


@dataclass
class PushReport(ImportReport):
    """What became of what was pushed, and what it was found to be."""

    formats: dict[str, str] = field(default_factory=dict)


def store_pushed(source: Source, files: Iterable[RecordFile], masker: Masker, report: PushReport) -> None:
    """Take records into the inbox under the source's name, by its rule, adding to the report."""
    rule, ids = from_json(source.rule, PUSHED), RecordIds()
    for file in files:
        records = iter(file.records)
        while batch := list(islice(records, BATCH)):
            name = masker.mask_text(file.name)
            report.formats[name] = file.format
            store_batch(
                pusher(source), source.harness, batch, report,
                masker=masker, rule=rule, source_name=source.name, file=name, ids=ids,
            )  # fmt: skip


def pusher(source: Source) -> Actor:
    """A source as it stands in the audit trail."""
    return Actor(f"source {source.name}", Role.DEVELOPER)


def note_seen(source: Source) -> None:
    """Write down that a source was heard of, now and then."""
    now = timezone.now()
    stale = Q(last_seen_at=None) | Q(last_seen_at__lt=now - SEEN)
    if source.last_seen_at is None or source.last_seen_at < now - SEEN:
        Source.objects.filter(stale, pk=source.pk).update(last_seen_at=now)
