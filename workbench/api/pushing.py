"""What the endpoints share that sources push to: who it is, and that a database that is away is no loss."""

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from evolution.models import Source
from evolution.queries.sources import find_source
from workbench.api.bodies import Refused

# Seconds after which a push is worth another try.
RETRY_AFTER = 5


class Retry(Refused):
    """The push was not taken for now; the same again is welcome."""

    def __init__(self) -> None:
        super().__init__(HTTPStatus.SERVICE_UNAVAILABLE, _("the database can't be reached; push this again"))


def get_source(request: HttpRequest) -> Source:
    """The source whose token the request carries; raises Refused."""
    scheme, _blank, token = request.headers.get("Authorization", "").partition(" ")
    source = find_source(token.strip()) if scheme.lower() == "bearer" else None
    if source is None:
        text = _("this needs the header Authorization: Bearer, with the token of a source")
        raise Refused(HTTPStatus.UNAUTHORIZED, text)
    if not source.is_enabled:
        text = _("the source %(name)s is disabled")
        raise Refused(HTTPStatus.FORBIDDEN, text % {"name": source.name})
    return source


def answer_refusals(
    write: Callable[[HttpRequest, Refused], HttpResponse],
) -> Callable[[Callable[[HttpRequest], HttpResponse]], Callable[[HttpRequest], HttpResponse]]:
    """Make a view answer what is Refused by `write`, and a database that is away as Retry."""

    def decorate(view: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
        @wraps(view)
        def answer(request: HttpRequest) -> HttpResponse:
            try:
                return view(request)
            except (OperationalError, InterfaceError):
                return add_headers(write(request, Retry()), Retry())
            except Refused as refused:
                return add_headers(write(request, refused), refused)

        return answer

    return decorate


def add_headers(response: HttpResponse, refused: Refused) -> HttpResponse:
    """What HTTP wants said beside the status."""
    response.status_code = refused.status
    if refused.status == HTTPStatus.SERVICE_UNAVAILABLE:
        response.headers["Retry-After"] = str(RETRY_AFTER)
    if refused.status == HTTPStatus.UNAUTHORIZED:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response
