"""The audit trail: narrowed for its page, whole for its export."""

import csv
import json
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.utils import timezone

from evolution.models import Event, Harness

PAGE_SIZE = 100
FORMATS = ("jsonl", "csv")
COLUMNS = (
    "id", "at", "actor", "verb", "target_kind", "target_id", "harness_id", "harness", "reason", "data",
)  # fmt: skip
# By which a spreadsheet knows a formula, the wide ones in East Asia.
_FORMULA_SIGNS = tuple("=+-@＝＋－＠")
# Unicode's controls, format characters and separators.
_NOT_SHOWN = "CZ"
# Rows that are held at once while all are written.
_CHUNK = 2_000


@dataclass(frozen=True)
class EventFilter:
    """What of the audit trail is wanted; what is empty does not narrow."""

    # a part of the verb, or of the actor's name
    text: str = ""
    actor: str = ""
    # a whole verb, or its beginning up to a dot: "proposal" is all that happened to proposals
    verb: str = ""
    target_kind: str = ""
    target_id: int | None = None
    # days, both included, where the installation's clocks are
    since: date | None = None
    until: date | None = None

    def apply(self, events: QuerySet[Event]) -> QuerySet[Event]:
        """The events that pass."""
        exact = {"actor": self.actor, "target_kind": self.target_kind, "target_id": self.target_id}
        events = events.filter(**{name: value for name, value in exact.items() if value not in ("", None)})
        if self.text:
            events = events.filter(verb__icontains=self.text) | events.filter(actor__icontains=self.text)
        if self.verb:
            events = events.filter(verb=self.verb) | events.filter(verb__startswith=f"{self.verb}.")
        if self.since:
            events = events.filter(at__gte=_midnight(self.since))
        if self.until:
            events = events.filter(at__lt=_midnight(self.until + timedelta(days=1)))
        return events


EVERYTHING = EventFilter()


def list_events(harness: Harness, page: str | int = 1, wanted: EventFilter = EVERYTHING) -> Page[Event]:
    """One page of a harness's events, newest first."""
    events = wanted.apply(Event.objects.filter(harness_id=harness.pk))
    return Paginator(events.order_by("-id"), PAGE_SIZE).get_page(page)


def list_kinds(harness: Harness) -> list[str]:
    """The kinds of records that something happened to."""
    kinds = Event.objects.filter(harness_id=harness.pk).order_by("target_kind").values_list("target_kind")
    return [kind for (kind,) in kinds.distinct()]


def export_events(
    harness: Harness | None, fmt: str = "jsonl", wanted: EventFilter = EVERYTHING
) -> Iterator[str]:
    """All events of a harness (None: of the installation) as lines of text, oldest first, with every column.

    JSON Lines give each value as it is. In CSV `data` is JSON, and a text that a spreadsheet would take for a formula
    begins with an apostrophe.
    """
    events = Event.objects.all() if harness is None else Event.objects.filter(harness_id=harness.pk)
    rows = _read_rows(wanted.apply(events).order_by("id"))
    return _write_csv(rows) if fmt == "csv" else _write_json(rows)


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _read_rows(events: QuerySet[Event]) -> Iterator[dict[str, Any]]:
    names = dict(Harness.objects.values_list("pk", "name"))
    for event in events.iterator(chunk_size=_CHUNK):
        row = {name: getattr(event, name) for name in COLUMNS if name != "harness"}
        # The trail outlives the harness.
        harness = names.get(event.harness_id or 0, "")
        yield {name: {**row, "at": event.at.isoformat(), "harness": harness}[name] for name in COLUMNS}


def _write_json(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(row, ensure_ascii=False) + "\n"


class _Echo:
    """A file that hands back what is written to it."""

    def write(self, text: str) -> str:
        return text


def _write_csv(rows: Iterator[dict[str, Any]]) -> Iterator[str]:
    writer = csv.writer(_Echo())
    # Spreadsheets take a file without it for another encoding.
    yield "\ufeff" + str(writer.writerow(COLUMNS))
    for row in rows:
        data = json.dumps(row["data"], ensure_ascii=False)
        yield str(writer.writerow([_as_text(value) for value in {**row, "data": data}.values()]))


def _as_text(value: object) -> object:
    """A cell that no spreadsheet takes for a formula, whatever that does not show stands before the sign."""
    if not isinstance(value, str):
        return value
    shown = (letter for letter in value if unicodedata.category(letter)[0] not in _NOT_SHOWN)
    return f"'{value}" if next(shown, "") in _FORMULA_SIGNS else value


def newest_event(harness: Harness) -> str:
    """The id of the newest event, which tells whether anything changed; empty before the first."""
    newest = Event.objects.filter(harness_id=harness.pk).order_by("-id").values_list("id", flat=True).first()
    return str(newest or "")


def recent_events(harness: Harness, limit: int = 8) -> list[Event]:
    """The newest events of a harness; the comings and goings of jobs are left to the audit trail."""
    events = Event.objects.filter(harness_id=harness.pk).exclude(target_kind__in=("job", "failurecase"))
    return list(events.order_by("-id")[:limit])


def list_events_about(kind: str, pk: int, limit: int = 12) -> list[Event]:
    """The newest events of one record."""
    return list(Event.objects.filter(target_kind=kind, target_id=pk).order_by("-id")[:limit])
