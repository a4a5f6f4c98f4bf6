from django.test import Client

from evolution.models import SavedView
from tests.workbench.views.conftest import World


def save(world: World, client: Client, query: str, **given: str) -> None:
    client.post(world.url(f"cases/views/save/?{query}"), given)


def test_the_filters_in_use_are_saved_without_the_place(world: World, developer: Client) -> None:
    save(world, developer, "state=&tag=price&before=7&all=1&odd=1", name="prices", is_shared="on")

    view = SavedView.objects.exclude(owner="d").get()
    assert (view.query, view.owner, view.is_shared) == ("state=&tag=price", "developer", True)


def test_the_inbox_opens_with_the_default_view(world: World, viewer: Client) -> None:
    save(world, viewer, "category=stock", name="stock", is_default="on")

    answer = viewer.get(world.url("cases/"))
    other = viewer.get(world.url("cases/?state=open"))

    assert answer["Location"] == world.url("cases/?category=stock")
    assert other.status_code == 200


def test_views_are_links_on_the_list(world: World, viewer: Client) -> None:
    save(world, viewer, "category=stock", name="<b>stock")

    page = viewer.get(world.url("cases/?category=stock")).content.decode()

    assert "?category=stock" in page
    assert "<b>stock" not in page


def test_a_view_is_taken_away_by_its_owner(world: World, viewer: Client, developer: Client) -> None:
    save(world, viewer, "category=stock", name="stock")
    view = SavedView.objects.exclude(owner="d").get()

    refused = developer.post(world.url(f"cases/views/{view.pk}/delete/"))
    viewer.post(world.url(f"cases/views/{view.pk}/delete/"))

    assert refused.status_code == 403
    assert not SavedView.objects.exclude(owner="d").exists()
