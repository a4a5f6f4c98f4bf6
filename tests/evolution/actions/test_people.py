"""Roles for one harness: who gives them, what they change, and that somebody is always left who can."""

import pytest
from django.contrib.auth.models import Group, User

from evolution.actions.people import remove_role, set_role, set_second_reviewer
from evolution.actors import NotAllowed, Role
from evolution.errors import LoopError
from evolution.models import Event, Harness
from evolution.queries.people import find_actor, list_roles
from evolution.states import RoleName
from tests.evolution.measured import ANNA, DEV

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def make_user(name: str, *groups: str, is_superuser: bool = False) -> User:
    user = User.objects.create_user(name, f"{name}@example.org", is_superuser=is_superuser)
    user.groups.set([Group.objects.get_or_create(name=group)[0] for group in groups])
    return user


def role_of(user: User, harness: str = "shop") -> Role:
    return find_actor(user, harness).role


def test_a_role_holds_for_its_harness_only(harness: Harness) -> None:
    make_user("anna", "operator")
    bob = make_user("bob", "developer")
    set_role(ANNA, harness, bob, RoleName.VIEWER)
    assert (role_of(bob), role_of(bob, "other"), role_of(bob, "")) == (
        Role.VIEWER,
        Role.DEVELOPER,
        Role.DEVELOPER,
    )
    set_role(ANNA, harness, bob, RoleName.OPERATOR)
    assert role_of(bob) == Role.OPERATOR
    remove_role(ANNA, harness, bob)
    assert role_of(bob) == Role.DEVELOPER


def test_each_change_is_in_the_audit_trail_once(harness: Harness) -> None:
    make_user("anna", "operator")
    bob = make_user("bob")
    for _time in range(2):
        set_role(ANNA, harness, bob, RoleName.DEVELOPER)
    for _time in range(2):
        remove_role(ANNA, harness, bob)
    told = Event.objects.order_by("id").values_list("actor", "verb", "data")
    assert list(told) == [
        ("anna", "harness.role_given", {"user": "bob", "old": "", "new": "developer"}),
        ("anna", "harness.role_removed", {"user": "bob", "old": "developer", "new": "viewer"}),
    ]


def test_the_last_operator_stays_one(harness: Harness) -> None:
    anna = make_user("anna", "operator")
    with pytest.raises(LoopError, match="nobody would be left"):
        set_role(ANNA, harness, anna, RoleName.VIEWER)
    assert role_of(anna) == Role.OPERATOR
    eve = make_user("eve")
    set_role(ANNA, harness, eve, RoleName.OPERATOR)
    set_role(ANNA, harness, anna, RoleName.VIEWER)
    with pytest.raises(LoopError, match="nobody would be left"):
        remove_role(ANNA, harness, eve)
    assert (role_of(anna), role_of(eve)) == (Role.VIEWER, Role.OPERATOR)


def test_somebody_who_can_not_sign_in_is_no_operator(harness: Harness) -> None:
    anna = make_user("anna", "operator")
    gone = make_user("gone", "operator")
    gone.is_active = False
    gone.save()
    with pytest.raises(LoopError, match="nobody would be left"):
        set_role(ANNA, harness, anna, RoleName.DEVELOPER)


def test_administrators_are_left_alone(harness: Harness) -> None:
    root = make_user("root", is_superuser=True)
    with pytest.raises(LoopError, match="administers"):
        set_role(ANNA, harness, root, RoleName.VIEWER)
    # Someone is left who gives roles: the administrator.
    anna = make_user("anna", "operator")
    set_role(ANNA, harness, anna, RoleName.VIEWER)
    people = {person.user.username: person.role for person in list_roles(harness)}
    assert people == {"anna": Role.VIEWER, "root": Role.OPERATOR}


def test_only_operators_give_roles(harness: Harness) -> None:
    bob = make_user("bob", "operator")
    with pytest.raises(NotAllowed):
        set_role(DEV, harness, bob, RoleName.VIEWER)
    with pytest.raises(NotAllowed):
        remove_role(DEV, harness, bob)
    with pytest.raises(NotAllowed):
        set_second_reviewer(DEV, harness, is_needed=True)


def test_the_rule_for_reviews_is_switched(harness: Harness) -> None:
    for _time in range(2):
        set_second_reviewer(ANNA, harness, is_needed=True)
    assert Harness.objects.get().needs_second_reviewer
    assert Event.objects.get().data == {"needs_second_reviewer": True}
