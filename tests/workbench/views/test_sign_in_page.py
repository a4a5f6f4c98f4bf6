import pytest
from django.contrib.auth.models import User
from django.test import Client


@pytest.fixture
def anna(db: None) -> User:
    return User.objects.create_user("anna", password="a password of tests")


def test_signing_in_goes_where_one_wanted_to_go(anna: User, outsider: Client) -> None:
    fields = {"username": "anna", "password": "a password of tests", "next": "/h/shop/cases/"}

    assert outsider.post("/accounts/login/", fields).headers["Location"] == "/h/shop/cases/"


def test_a_wrong_password_stays_on_the_page(anna: User, outsider: Client) -> None:
    answer = outsider.post("/accounts/login/", {"username": "anna", "password": "no"})

    assert "do not match" in answer.content.decode()


def test_signing_in_leads_nowhere_else(anna: User, outsider: Client) -> None:
    fields = {"username": "anna", "password": "a password of tests", "next": "https://evil.example/"}

    assert outsider.post("/accounts/login/", fields).headers["Location"] == "/"


def test_the_health_check_needs_no_sign_in(outsider: Client) -> None:
    answer = outsider.get("/healthz")

    assert (answer.status_code, answer.json()["database"]) == (200, "ok")
