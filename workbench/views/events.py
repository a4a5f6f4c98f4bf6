"""The audit trail."""

from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import reverse
from django.views.decorators.http import require_safe

from evolution.models import Cluster, Diagnosis, Event, Harness, Release, Step
from evolution.queries import events as event_queries
from workbench.access import Request, get_harness_for
from workbench.event_forms import EventFilterForm
from workbench.rendering import render_page

# The page of a record by kind.
BY_KEY = {"failurecase": "case", "proposal": "proposal", "evaluation": "evaluation"}
# What goes by number, and where the number stands; a diagnosis is on its cluster's page.
NUMBERED: dict[str, tuple[QuerySet[Any], str]] = {
    "cluster": (Cluster.objects.all(), "number"),
    "diagnosis": (Diagnosis.objects.all(), "cluster__number"),
    "step": (Step.objects.all(), "number"),
    "release": (Release.objects.all(), "number"),
}


@dataclass(frozen=True)
class LinkedEvent:
    """An event, with the address of what it is about when that has a page."""

    event: Event
    url: str
    # what people call the target: its number, or its key
    number: int


@require_safe
def event_list(request: Request, harness: str) -> HttpResponse:
    """List what happened, newest first."""
    record = get_harness_for(request, harness)
    form = EventFilterForm(request.GET)
    page = event_queries.list_events(record, request.GET.get("page", 1), form.wanted())
    context = {
        "page": page,
        "events": link_events(record, list(page.object_list)),
        "form": form,
        "kinds": event_queries.list_kinds(record),
        "is_narrowed": any(form.data.values()),
    }
    return render_page(request, "events.html", context, record)


@require_safe
def export(request: Request, harness: str) -> StreamingHttpResponse:
    """All that passes the filters, with every column, as JSON Lines or CSV."""
    record = get_harness_for(request, harness)
    fmt = request.GET.get("format", "")
    fmt = fmt if fmt in event_queries.FORMATS else event_queries.FORMATS[0]
    lines = event_queries.export_events(record, fmt, EventFilterForm(request.GET).wanted())
    kind = "text/csv" if fmt == "csv" else "application/x-ndjson"
    answer = StreamingHttpResponse(lines, content_type=f"{kind}; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="{record.name}-audit-trail.{fmt}"'
    return answer


def link_events(harness: Harness, events: list[Event]) -> list[LinkedEvent]:
    """Give events the addresses of their targets, in one query per kind."""
    numbers = {kind: _numbers(kind, events) for kind in NUMBERED}
    return [
        _link(harness, event, numbers.get(event.target_kind, {}).get(event.target_id)) for event in events
    ]


def _numbers(kind: str, events: list[Event]) -> dict[int, int]:
    ids = {event.target_id for event in events if event.target_kind == kind}
    records, column = NUMBERED[kind]
    return dict(records.filter(pk__in=ids).values_list("pk", column)) if ids else {}


def _link(harness: Harness, event: Event, number: int | None) -> LinkedEvent:
    kind = event.target_kind
    if kind in BY_KEY:
        return LinkedEvent(
            event, reverse(BY_KEY[kind], args=[harness.name, event.target_id]), event.target_id
        )
    if number is None:
        return LinkedEvent(event, "", event.target_id)
    if kind == "release":
        return LinkedEvent(event, reverse("releases", args=[harness.name]), number)
    page = "cluster" if kind == "diagnosis" else kind
    shown = event.target_id if kind == "diagnosis" else number
    return LinkedEvent(event, reverse(page, args=[harness.name, number]), shown)
