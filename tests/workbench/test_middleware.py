import pytest
from django.contrib.auth.models import User
from django.http import HttpResponse
from django.test import Client, RequestFactory

from harness_repo.git.errors import MissingRef
from workbench.middleware import UnreadableRepositoryMiddleware


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


@pytest.mark.django_db
@pytest.mark.parametrize("query", ["text=%00", "state=a%00b", "next=x\0"])
def test_a_query_with_a_nul_is_a_bad_request(client: Client, query: str) -> None:
    answer = client.get(f"/accounts/login/?{query}")
    assert (answer.status_code, "To the board" in answer.content.decode()) == (400, True)


def test_a_repository_that_cannot_be_read_is_said_on_any_page(rf: RequestFactory) -> None:
    middleware = UnreadableRepositoryMiddleware(lambda _request: HttpResponse())
    answer = middleware.process_exception(rf.get("/h/shop/"), MissingRef("main is gone"))
    assert answer is not None
    assert (answer.status_code, "main is gone" in answer.content.decode()) == (503, True)
    assert middleware.process_exception(rf.get("/h/shop/"), ZeroDivisionError()) is None
