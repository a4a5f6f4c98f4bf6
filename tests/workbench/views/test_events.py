"""The audit trail's filters, and its export."""

import json

import pytest
from django.test import Client

from evolution.models import Event
from tests.workbench.views.conftest import World


@pytest.mark.parametrize(
    ("query", "is_there"),
    [
        ("actor=anna", True),
        ("actor=nobody", False),
        ("verb=harness", True),
        ("kind=harness&since=2024-01-01", True),
        ("until=2024-01-01", False),
        ("target=-1&since=yesterday", True),
    ],
)
def test_the_trail_is_narrowed(world: World, viewer: Client, query: str, *, is_there: bool) -> None:
    answer = viewer.get(world.url(f"events/?{query}")).content.decode()
    assert ("harness.created" in answer) == is_there
    assert ("was left out" in answer) == ("yesterday" in query)


def test_an_export_has_what_the_page_has(world: World, viewer: Client) -> None:
    answer = viewer.get(world.url("events/export/?verb=step&format=jsonl"))
    rows = [json.loads(line) for line in answer.getvalue().decode().splitlines()]
    expected = Event.objects.filter(harness_id=world.harness.pk, verb__startswith="step.").order_by("id")
    assert [row["id"] for row in rows] == [event.pk for event in expected]
    assert answer.headers["Content-Disposition"] == 'attachment; filename="shop-audit-trail.jsonl"'


def test_a_format_that_nobody_knows_is_json_lines(world: World, viewer: Client) -> None:
    assert (
        viewer.get(world.url("events/export/?format=exe"))
        .headers["Content-Type"]
        .startswith("application/x-ndjson")
    )
