import pytest
from django.contrib.auth.models import User
from django.test import Client

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="x"))
    return client


def test_an_account_is_not_deleted(admin: Client) -> None:
    bob = User.objects.create_user("bob")
    assert admin.post(f"/admin/auth/user/{bob.pk}/delete/", {"post": "yes"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [bob.pk], "post": "yes"}
    admin.post("/admin/auth/user/", chosen)
    assert User.objects.filter(username="bob").exists()


def test_an_account_is_closed_and_keeps_its_name(admin: Client) -> None:
    bob = User.objects.create_user("bob", is_active=True)
    page = admin.get(f"/admin/auth/user/{bob.pk}/change/").content.decode()
    assert 'name="is_active"' in page
    joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    answer = admin.post(f"/admin/auth/user/{bob.pk}/change/", {"username": "other", **joined})
    bob.refresh_from_db()
    assert (answer.status_code, bob.username, bob.is_active) == (302, "bob", False)
