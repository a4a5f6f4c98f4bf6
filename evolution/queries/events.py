"""The audit trail of a harness."""

from django.core.paginator import Page, Paginator

from evolution.models import Event, Harness

PAGE_SIZE = 100


def list_events(harness: Harness, page: str | int = 1, *, text: str = "") -> Page[Event]:
    """One page of events, newest first; `text` narrows to verbs and actors that contain it."""
    events = Event.objects.filter(harness_id=harness.pk)
    if text:
        events = events.filter(verb__icontains=text) | events.filter(actor__icontains=text)
    return Paginator(events.order_by("-id"), PAGE_SIZE).get_page(page)


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
