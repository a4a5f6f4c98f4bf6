"""Whom cases can be assigned to."""

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from evolution.errors import LoopError

MOST_PEOPLE = 1_000


def list_people() -> list[User]:
    """Those who can sign in, by name."""
    return list(User.objects.filter(is_active=True).order_by("username")[:MOST_PEOPLE])


def find_person(name: str) -> User | None:
    """Whoever has the name; None for an empty one. Raises LoopError when nobody has it, or may not sign in."""
    if not name:
        return None
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None:
        raise LoopError(_("there is nobody called %(name)s") % {"name": name})
    return person
