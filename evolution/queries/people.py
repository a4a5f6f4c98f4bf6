"""People: whom cases can be assigned to, and who may do what for a harness."""

from dataclasses import dataclass

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.people import general_role
from evolution.models import Harness, HarnessRole

MOST_PEOPLE = 1_000


@dataclass(frozen=True)
class Person:
    """Somebody who can sign in, and what they may do for one harness."""

    user: User
    # what holds where no harness says otherwise
    general: Role
    # the harness's own word, None where it has none
    own: Role | None
    # an administrator of the installation, whom no harness's word holds back
    is_admin: bool

    @property
    def role(self) -> Role:
        """What holds for the harness."""
        return self.general if self.own is None or self.is_admin else self.own


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


def find_actor(user: User, harness: str = "") -> Actor:
    """A signed-in person as the loop knows them: with the role for the harness of that name, else the general one."""
    email = getattr(user, "email", "")
    if user.is_superuser:
        return Actor(user.get_username(), Role.OPERATOR, email)
    own = HarnessRole.objects.filter(user_id=user.pk, harness__name=harness).first() if harness else None
    role = Role[own.role.upper()] if own else general_role(user)
    return Actor(user.get_username(), role, email)


def list_roles(harness: Harness) -> list[Person]:
    """Those who can sign in, by name, with their roles for a harness."""
    users = User.objects.filter(is_active=True).prefetch_related("groups").order_by("username")
    own = dict(HarnessRole.objects.filter(harness=harness).values_list("user_id", "role"))
    return [
        Person(
            user,
            general_role(user),
            Role[own[user.pk].upper()] if user.pk in own else None,
            user.is_superuser,
        )
        for user in users[:MOST_PEOPLE]
    ]
