"""What operators of a harness do about people: give them a role for it, take it back, ask for a second reviewer."""

from django.contrib.auth.models import User
from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.locks import lock_harness
from evolution.loop.people import general_role, has_operator
from evolution.models import Harness, HarnessRole
from evolution.states import RoleName
from evolution.transitions import record

# Whoever may do any of this.
NEEDED = Role.OPERATOR


@transaction.atomic
def set_role(actor: Actor, harness: Harness, user: User, role: RoleName) -> None:
    """Give somebody a role for this harness, in place of their general one; it can be a lower one too.

    Raises LoopError when nobody would be left to give roles, or for an administrator, whose role is no harness's to
    give.
    """
    actor.require(NEEDED)
    lock_harness(harness)
    if user.is_superuser:
        text = _("%(name)s administers the installation, and is an operator of every harness")
        raise LoopError(text % {"name": user.get_username()})
    known = HarnessRole.objects.filter(harness=harness, user=user).first()
    if known is not None and known.role == role:
        return
    HarnessRole.objects.update_or_create(harness=harness, user=user, defaults={"role": role})
    _check_operators(harness)
    old = known.role if known else ""
    record(actor, "harness.role_given", harness, user=user.get_username(), old=old, new=role.value)


@transaction.atomic
def remove_role(actor: Actor, harness: Harness, user: User) -> None:
    """Have somebody's general role count for this harness again. LoopError when nobody could give roles then."""
    actor.require(NEEDED)
    lock_harness(harness)
    known = HarnessRole.objects.filter(harness=harness, user=user).first()
    if known is None:
        return
    known.delete()
    _check_operators(harness)
    left = general_role(user).name.lower()
    record(actor, "harness.role_removed", harness, user=user.get_username(), old=known.role, new=left)


@transaction.atomic
def set_second_reviewer(actor: Actor, harness: Harness, *, is_needed: bool) -> None:
    """Say whether a proposal has to be approved by somebody else than its author."""
    actor.require(NEEDED)
    lock_harness(harness)
    harness.refresh_from_db(fields=["needs_second_reviewer"])
    if harness.needs_second_reviewer != is_needed:
        harness.needs_second_reviewer = is_needed
        harness.save(update_fields=["needs_second_reviewer"])
        record(actor, "harness.review_policy_set", harness, needs_second_reviewer=is_needed)


def _check_operators(harness: Harness) -> None:
    """After the change, within its transaction."""
    if not has_operator(harness):
        raise LoopError(_("nobody would be left to give roles for %(harness)s") % {"harness": harness})
