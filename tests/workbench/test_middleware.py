import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.mark.django_db
def test_every_page_forbids_inline_scripts(client: Client) -> None:
    response = client.get("/healthz")
    assert response.status_code == 200
    assert "script-src 'self';" in response["Content-Security-Policy"]


@pytest.mark.django_db
def test_the_database_is_a_real_one() -> None:
    User.objects.create_user("someone")
    assert User.objects.count() == 1
