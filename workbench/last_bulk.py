"""What somebody last did to many cases in this browser, which the inbox offers for undoing."""

from django.http import HttpRequest

from evolution.models import BulkAction, Harness

_KEY = "last-bulk"


def keep_last_bulk(request: HttpRequest, action: BulkAction) -> None:
    """Offer a bulk action that has changed something."""
    if action.count:
        request.session[_KEY] = action.pk


def read_last_bulk(request: HttpRequest, harness: Harness) -> BulkAction | None:
    """The action that is offered on the inbox of a harness: the last one, until it is undone."""
    kept = request.session.get(_KEY)
    if kept is None:
        return None
    return BulkAction.objects.filter(pk=kept, harness=harness, undone_at=None).first()
