"""What people do with views of the inbox: save one under a name, for themselves or for all, and take it away."""

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actions.legible import is_legible
from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.models import Harness, SavedView
from evolution.transitions import record

LONGEST_NAME = 80
MOST_VIEWS = 100


@transaction.atomic
def save_view(
    actor: Actor,
    harness: Harness,
    name: str,
    query: str,
    *,
    is_shared: bool = False,
    is_default: bool = False,
) -> SavedView:
    """Save a list's query under a name, in place of the actor's view of that name.

    The actor's default view is what the inbox opens with; there is one. Raises LoopError for a name that is none.
    """
    actor.require(Role.DEVELOPER if is_shared else Role.VIEWER)
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        raise LoopError(_("a view needs a name of at most %(most)d characters") % {"most": LONGEST_NAME})
    if not is_legible(name):
        raise LoopError(_("a name has to be seen: no characters that hide or turn text round"))
    own = SavedView.objects.filter(harness=harness, owner=actor.name)
    if own.exclude(name=name).count() >= MOST_VIEWS:
        raise LoopError(_("there are %(most)d views already; take one away first") % {"most": MOST_VIEWS})
    if is_default:
        own.update(is_default=False)
    fields = {"query": query, "is_shared": is_shared, "is_default": is_default}
    view, _new = SavedView.objects.update_or_create(
        harness=harness, owner=actor.name, name=name, defaults=fields
    )
    record(actor, "savedview.saved", view, name=name, query=query, shared=is_shared)
    return view


@transaction.atomic
def delete_view(actor: Actor, view: SavedView) -> None:
    """Take a view away: one's own, or as an operator anybody's."""
    actor.require(Role.VIEWER if view.owner == actor.name else Role.OPERATOR)
    record(actor, "savedview.deleted", view, name=view.name, query=view.query)
    view.delete()
