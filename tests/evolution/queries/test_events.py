"""The audit trail: what its filters leave, and what an export holds."""

import csv
import io
import json
import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from evolution.actors import Actor, Role
from evolution.models import Event, Harness
from evolution.queries.events import COLUMNS, EventFilter, export_events, list_events, list_kinds
from evolution.transitions import record

pytestmark = pytest.mark.django_db
MALLORY = Actor('=HYPERLINK("http://x")', Role.DEVELOPER)


@pytest.fixture
def harness() -> Harness:
    harness = Harness.objects.create(name="shop", kind="agent", path="shop.git")
    other = Harness.objects.create(name="other", kind="agent", path="other.git")
    record(Actor("anna", Role.OPERATOR), "harness.created", harness, 'first, "quoted"\nand more')
    record(MALLORY, "proposal.confirmed", other, "elsewhere")
    record(MALLORY, "harness.fetched", harness, "+1", branches={"主": "=1"})
    return harness


def found(harness: Harness, wanted: EventFilter) -> list[str]:
    return [event.verb for event in list_events(harness, 1, wanted)]


def at(day: str, verb: str) -> None:
    """Have an event be of another day; nothing but a new row can be written."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO evolution_event (at, actor, verb, target_kind, target_id, harness_id, reason, data)"
            " SELECT %s, 'x', %s, 'harness', 1, id, '', '{}' FROM evolution_harness WHERE name = 'shop'",
            [datetime.fromisoformat(day).replace(tzinfo=UTC), verb],
        )


@pytest.mark.parametrize(
    ("wanted", "verbs"),
    [
        (EventFilter(), ["harness.fetched", "harness.created"]),
        (EventFilter(actor="anna"), ["harness.created"]),
        (EventFilter(text="FETCH"), ["harness.fetched"]),
        (EventFilter(verb="harness"), ["harness.fetched", "harness.created"]),
        (EventFilter(verb="harness.cr"), []),
        (EventFilter(verb="harness.created"), ["harness.created"]),
        (EventFilter(target_kind="proposal"), []),
        (EventFilter(target_id=0), []),
    ],
)
def test_a_filter_leaves_what_it_says(harness: Harness, wanted: EventFilter, verbs: list[str]) -> None:
    assert found(harness, wanted) == verbs
    assert list_kinds(harness) == ["harness"]


def test_both_days_are_included(harness: Harness) -> None:
    at("2024-05-01T00:00:00", "a")
    at("2024-05-02T23:59:59", "b")
    at("2024-05-03T00:00:00", "c")
    wanted = EventFilter(since=date(2024, 5, 1), until=date(2024, 5, 2))
    assert found(harness, wanted) == ["b", "a"]


def test_json_lines_give_every_column_as_it_is(harness: Harness) -> None:
    rows = [json.loads(line) for line in export_events(harness)]
    assert [list(row) for row in rows] == [list(COLUMNS)] * 2
    event = Event.objects.order_by("id")[0]
    assert rows[0] == {
        "id": event.pk,
        "at": event.at.isoformat(),
        "actor": "anna",
        "verb": "harness.created",
        "target_kind": "harness",
        "target_id": harness.pk,
        "harness_id": harness.pk,
        "harness": "shop",
        "reason": 'first, "quoted"\nand more',
        "data": {},
    }


def test_a_table_holds_no_formulas(harness: Harness) -> None:
    text = "".join(export_events(harness, "csv"))
    rows = list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"), newline="")))
    assert rows[0]["reason"] == 'first, "quoted"\nand more'
    assert (rows[1]["actor"], rows[1]["reason"]) == ('\'=HYPERLINK("http://x")', "'+1")
    assert json.loads(rows[1]["data"]) == {"branches": {"主": "=1"}}


@pytest.mark.parametrize("text", ["＝1+1", "＠x", "\ufeff=1", "\u200b －1", "\t=1", "=1"])
def test_signs_that_only_some_spreadsheets_know_make_no_formula(harness: Harness, text: str) -> None:
    record(MALLORY, "harness.fetched", harness, text)
    rows = csv.DictReader(io.StringIO("".join(export_events(harness, "csv")), newline=""))
    assert f"'{text}" in [row["reason"] for row in rows]


def test_the_command_writes_the_whole_installation_or_one_harness(harness: Harness, tmp_path: Path) -> None:
    out = io.StringIO()
    call_command("export_events", stdout=out)
    assert [json.loads(line)["harness"] for line in out.getvalue().splitlines()] == ["shop", "other", "shop"]
    file = tmp_path / "trail.csv"
    call_command(
        "export_events", "shop", "--format", "csv", "--actor", "anna", output=file, stderr=io.StringIO()
    )
    assert len(list(csv.reader(io.StringIO(file.read_text("utf-8"), newline="")))) == 2
    with pytest.raises(CommandError, match="can't write"):
        call_command("export_events", output=file)
    with pytest.raises(CommandError, match="no harness"):
        call_command("export_events", "nobody")


@pytest.mark.parametrize(
    "asked",
    [("--until", "9999-12-31"), ("--since", "0001-01-01"), ("--since", "x"), ("--verb", "a\0"), ("a\0",)],
)
def test_what_no_event_can_have_is_refused_in_words(harness: Harness, asked: tuple[str, ...]) -> None:
    with pytest.raises(CommandError, match=r"argument"):
        call_command("export_events", *asked)


@pytest.mark.parametrize("count", [1, 300])
def test_the_command_ends_quietly_when_nobody_reads_on(harness: Harness, count: int) -> None:
    for _time in range(count):
        record(MALLORY, "harness.fetched", harness, "x" * 100)
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        call_command("export_events", stdout=out)
