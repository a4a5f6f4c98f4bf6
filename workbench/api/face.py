"""The API for machines under /api/, described at /api/docs. Each request carries its own token; no session counts."""

from typing import Any

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, URLResolver
from ninja import NinjaAPI

from workbench.api import cases
from workbench.api.bodies import Refused
from workbench.api.pushing import Retry, add_headers

api = NinjaAPI(
    title="Harness Workbench",
    version="1",
    openapi_extra={"components": {"securitySchemes": {"SourceToken": {"type": "http", "scheme": "bearer"}}}},
)
api.add_router("", cases.router)


def _refuse(request: HttpRequest, refused: Any) -> HttpResponse:
    return add_headers(cases.write_refusal(api, request, refused), refused)


def _have_retried(request: HttpRequest, _error: Any) -> HttpResponse:
    return _refuse(request, Retry())


api.add_exception_handler(Refused, _refuse)
api.add_exception_handler(OperationalError, _have_retried)
api.add_exception_handler(InterfaceError, _have_retried)


def api_urls() -> tuple[list[URLResolver | URLPattern], str, str]:
    """The routes; those that a token opens need no sign-in, the documentation does."""
    routes, app_name, namespace = api.urls
    for route in routes:
        if isinstance(route, URLPattern) and not str(route.name).startswith(("openapi", "api-root")):
            route.callback.login_required = False  # type: ignore[attr-defined]
    return list(routes), str(app_name), str(namespace)
