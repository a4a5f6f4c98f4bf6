import pytest
from django.test import Client

from tests.workbench.views.conftest import sign_in, viewer

__all__ = ["sign_in", "viewer"]


def test_the_description_is_for_who_is_signed_in(db: None, viewer: Client) -> None:
    assert Client().get("/api/docs").status_code == 302
    page = viewer.get("/api/docs").content.decode()
    # Scripts of our own host alone, as the policy wants it.
    assert "swagger-ui-bundle.js" in page
    assert "https://" not in page


def test_the_description_names_the_token_and_every_answer(viewer: Client) -> None:
    push = viewer.get("/api/openapi.json").json()["paths"]["/api/cases"]["post"]
    assert push["security"] == [{"SourceToken": []}]
    assert set(push["responses"]) == {"200", "400", "401", "403", "413", "415", "422", "503"}


@pytest.mark.django_db
def test_another_method_is_refused() -> None:
    assert Client().get("/api/cases").status_code == 405
