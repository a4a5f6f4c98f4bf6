"""The views of the inbox that somebody may use."""

from django.db.models import Q

from evolution.models import Harness, SavedView


def list_views(harness: Harness, owner: str) -> list[SavedView]:
    """A person's own views and those that others share, by name; `is_default` is the person's own alone."""
    visible = SavedView.objects.filter(Q(owner=owner) | Q(is_shared=True), harness=harness)
    views = list(visible.order_by("name", "owner"))
    for view in views:
        view.is_default &= view.owner == owner
    return views
