"""Beside the stages: who may do what for a harness; the roles that its operators give, and the general ones."""

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


def has_operator(harness: Harness) -> bool:
    """Whether somebody who can sign in is an operator of the harness, so that roles can still be given."""
    people = User.objects.filter(is_active=True)
    own = HarnessRole.objects.filter(harness=harness)
    return (
        people.filter(is_superuser=True).exists()
        or people.filter(pk__in=own.filter(role=RoleName.OPERATOR).values("user")).exists()
        or people.filter(groups__name=RoleName.OPERATOR).exclude(pk__in=own.values("user")).exists()
    )
