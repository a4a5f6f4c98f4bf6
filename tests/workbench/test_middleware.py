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


@pytest.mark.django_db
def test_a_part_asked_for_after_the_session_ended_sends_the_whole_page_to_the_sign_in(client: Client) -> None:
    headers = {"HX-Request": "true", "HX-Current-URL": "http://testserver/h/shop/steps/1/"}
    response = client.get("/h/shop/steps/1/", headers=headers)
    assert response["HX-Redirect"] == "/accounts/login/?next=/h/shop/steps/1/"
    assert response.content == b""


@pytest.mark.django_db
def test_a_page_asked_for_without_sign_in_is_redirected_as_ever(client: Client) -> None:
    assert client.get("/h/shop/").headers["Location"] == "/accounts/login/?next=/h/shop/"
