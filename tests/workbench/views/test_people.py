"""Roles for one harness on every page and button, and the page on which operators give them."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from evolution.models import Event, Harness, HarnessRole
from tests.workbench.views.conftest import SignIn, World
from tests.workbench.views.pages import list_actions, list_pages
from tests.workbench.views.test_access import check_nothing_changes


def give(user: str, harness: Harness, role: str) -> None:
    HarnessRole.objects.create(user=User.objects.get(username=user), harness=harness, role=role)


def test_who_is_a_viewer_here_changes_nothing_here(world: World, operator: Client) -> None:
    give("operator", world.harness, "viewer")
    of_the_harness = {
        name: address for name, address in list_actions(world).items() if address.startswith(world.url())
    }
    check_nothing_changes(world, operator, of_the_harness)
    assert {operator.get(address).status_code for address in list_pages(world).values()} == {200}


def test_the_general_role_holds_elsewhere(world: World, developer: Client) -> None:
    give("developer", world.harness, "viewer")
    other = Harness.objects.get(name="shop-judge")
    assert developer.post(world.url("clusters/start/")).status_code == 403
    assert developer.post(reverse("clusters_start", args=[other.name])).status_code == 302


def test_a_role_for_one_harness_can_be_a_higher_one(world: World, viewer: Client) -> None:
    give("viewer", world.harness, "operator")
    other = Harness.objects.get(name="shop-judge")
    assert viewer.post(world.url("people/review/"), {"second": "on"}).status_code == 302
    assert viewer.post(reverse("review_policy", args=[other.name])).status_code == 403
    assert viewer.post("/masking/rules/phone/switch/", {"on": "1"}).status_code == 403
    assert Harness.objects.get(name="shop").needs_second_reviewer


def test_administrators_are_held_back_by_no_harness(world: World, operator: Client) -> None:
    User.objects.filter(username="operator").update(is_superuser=True)
    give("operator", world.harness, "viewer")
    assert operator.post(world.url("people/review/")).status_code == 302


@pytest.mark.parametrize(("role", "stored"), [("developer", ["developer"]), ("", [])])
def test_an_operator_gives_and_takes_a_role(
    world: World, operator: Client, sign_in: SignIn, role: str, stored: list[str]
) -> None:
    sign_in("viewer")
    give("viewer", world.harness, "annotator")
    operator.post(world.url("people/role/"), {"person": "viewer", "role": role})
    assert list(HarnessRole.objects.values_list("role", flat=True)) == stored


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"person": "nobody", "role": "viewer"}, "obody called"),
        ({"person": "", "role": "viewer"}, "whose role"),
        ({"person": "operator", "role": "emperor"}, "no such role"),
        ({"person": "operator", "role": "viewer"}, "Nobody would be left"),
    ],
)
def test_what_makes_no_sense_is_said(
    world: World, operator: Client, fields: dict[str, str], said: str
) -> None:
    before = Event.objects.count()
    answer = operator.post(world.url("people/role/"), fields, follow=True)
    assert said in answer.content.decode()
    assert (HarnessRole.objects.count(), Event.objects.count()) == (0, before)


def test_only_operators_see_the_forms(world: World, viewer: Client, operator: Client) -> None:
    pages = {client: client.get(world.url("people/")).content.decode() for client in (viewer, operator)}
    assert "people/role/" not in pages[viewer]
    assert "people/role/" in pages[operator]
    assert "you" in pages[viewer]


def test_the_page_says_who_an_author_is_and_where_people_are_added(world: World, operator: Client) -> None:
    page = operator.get(world.url("people/")).content.decode()
    assert "who is not one of its authors" in page
    assert reverse("admin:index") not in page

    User.objects.filter(username="operator").update(is_staff=True)
    assert reverse("admin:index") in operator.get(world.url("people/")).content.decode()
