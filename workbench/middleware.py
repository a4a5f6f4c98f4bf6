"""What every response goes through; no rule of the loop belongs here."""

import logging
from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render, resolve_url
from django_htmx.http import HttpResponseClientRedirect

from harness_repo.git.errors import HarnessRepoError

logger = logging.getLogger(__name__)

# Scripts only from our own static files: what a model or a viewer wrote can never run. Plotly and htmx write
# style rules of their own, hence inline *styles*.
DIRECTIVES = {
    "default-src": "'self'",
    "script-src": "'self'",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
CONTENT_SECURITY_POLICY = "; ".join(f"{name} {sources}" for name, sources in DIRECTIVES.items())


class ContentSecurityPolicyMiddleware:
    """Adds the policy above. Django 6 has this built in; this class goes then."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer with the policy, unless the view has set its own."""
        response = self.get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
        return response


class RefuseNulMiddleware:
    """Answers 400 to a query with a NUL character: PostgreSQL can't hold one, and no browser sends one by itself."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, unless the query is refused; the fields of a form are for the form to check."""
        if "\0" in unquote(request.META.get("QUERY_STRING", "")):
            raise SuspiciousOperation("NUL in the query")
        return self.get_response(request)


class UnreadableRepositoryMiddleware:
    """Answers 503, and says what git said, when a page can't be made because a harness's repository can't be read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Nothing to do until a view fails."""
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Explain what came out of git; everything else is left to Django."""
        if not isinstance(error, HarnessRepoError):
            return None
        logger.warning("%s: %s", request.path, error)
        return render(request, "unreadable_repository.html", {"problem": str(error)}, status=503)


class SignInAgainMiddleware:
    """Sends the whole page to the sign-in when a part of it is asked for after the session has ended.

    The browser would follow the redirect by itself, and the sign-in form would appear inside the part.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer, with a redirect of the page in place of one of the part."""
        response = self.get_response(request)
        sign_in = resolve_url(settings.LOGIN_URL)
        if (
            request.headers.get("HX-Request")
            and urlsplit(response.headers.get("Location", "")).path == sign_in
        ):
            page = urlsplit(request.headers.get("HX-Current-URL", "/")).path
            return HttpResponseClientRedirect(redirect_to_login(page).headers["Location"])
        return response
