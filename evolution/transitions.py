"""The only writer of states: a guarded update on the old state and one audit row, in one transaction."""

from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import Model, QuerySet, TextChoices
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import MoveRefused, StaleState
from evolution.models import Event
from evolution.states import MOVES, is_allowed
from harness_repo.runtime.storable import make_storable


@dataclass(frozen=True)
class Told:
    """What the audit trail says of something that is done to many records at once."""

    verb: str
    # what they have in common
    about: Model
    reason: str = ""
    data: dict[str, Any] = field(default_factory=dict)


def record(actor: Actor, verb: str, target: Model, reason: str = "", **data: Any) -> Event:
    """Append one row to the audit trail; what no database takes of a text is replaced in it."""
    return Event.objects.create(
        actor=actor.name,
        verb=verb,
        target_kind=target._meta.model_name or "",
        target_id=target.pk,
        harness_id=getattr(target, "harness_id", None)
        or (target.pk if target._meta.model_name == "harness" else None),
        reason=make_storable(reason),
        data=make_storable(data),
    )


def move(target: Any, to: TextChoices, actor: Actor, reason: str = "", **fields: Any) -> None:
    """Move a record to a state, setting `fields` with it.

    Raises MoveRefused when there is no such move, and StaleState when somebody else moved it first.
    """
    source = type(to)(target.state)
    if not is_allowed(source, to):
        values = {"record": target, "state": source.label, "wanted": to.label}
        raise MoveRefused(_("%(record)s is %(state)s; it can't become %(wanted)s") % values)
    with transaction.atomic():
        _update(target, source, source.label, state=to, **fields)
        record(actor, f"{target._meta.model_name}.{to.value}", target, reason, old=source.value, new=to.value)


def move_all(targets: QuerySet[Any], to: TextChoices, actor: Actor, told: Told, **fields: Any) -> int:
    """Move all records of a query that have such a move to a state, setting `fields` with it; returns how many.

    The others stay as they are. The audit trail gets one row for all of them.
    """
    sources = [source for source, allowed in MOVES[type(to)].items() if to.value in allowed]
    with transaction.atomic():
        moved = targets.filter(state__in=sources).update(state=to, **fields)
        record(actor, told.verb, told.about, told.reason, **told.data, new=to.value, count=moved)
    return moved


def change(target: Any, **fields: Any) -> None:
    """Set fields of a record that is still in the state it was read in; raises StaleState when it is not."""
    _update(target, target.state, target.get_state_display(), **fields)


def _update(target: Any, source: str, label: str, **fields: Any) -> None:
    """Write the fields where the record is in state `source`, and on the object."""
    changed = type(target).objects.filter(pk=target.pk, state=source).update(**fields)
    if changed != 1:
        values = {"record": target, "state": label}
        raise StaleState(_("%(record)s is no longer %(state)s: somebody moved it; reload the page") % values)
    for name, value in fields.items():
        setattr(target, name, value)
