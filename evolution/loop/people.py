"""Beside the stages: who may do what for a harness; the roles that its operators give, and the general ones."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from evolution.actors import Role
from evolution.models import Harness, HarnessRole
from evolution.states import RoleName


def general_role(user: User) -> Role:
    """The highest role of a person's groups; without one a viewer, administrators are operators."""
    if user.is_superuser:
        return Role.OPERATOR
    names = [group.name.upper() for group in user.groups.all()]
    return max((Role[name] for name in names if name in Role.__members__), default=Role.VIEWER)


def find_barred(harness: Harness, names: Iterable[str]) -> set[str]:
    """Those of the names whose accounts are closed, or below developer for the harness now.

    A name without an account is a part of the system, or somebody at the command line: nobody can bar these.
    """
    people = User.objects.filter(username__in=set(names), is_superuser=False).prefetch_related("groups")
    own = dict(HarnessRole.objects.filter(harness=harness, user__in=people).values_list("user_id", "role"))
    closed = User.objects.filter(username__in=set(names), is_active=False).values_list("username", flat=True)
    barred = {
        person.username
        for person in people
        if (Role[own[person.pk].upper()] if person.pk in own else general_role(person)) < Role.DEVELOPER
    }
    return barred | set(closed)


def has_operator(harness: Harness) -> bool:
    """Whether somebody who can sign in is an operator of the harness, so that roles can still be given."""
    people = User.objects.filter(is_active=True)
    own = HarnessRole.objects.filter(harness=harness)
    return (
        people.filter(is_superuser=True).exists()
        or people.filter(pk__in=own.filter(role=RoleName.OPERATOR).values("user")).exists()
        or people.filter(groups__name=RoleName.OPERATOR).exclude(pk__in=own.values("user")).exists()
    )
