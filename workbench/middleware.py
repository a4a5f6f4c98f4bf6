"""Headers that every response carries; no rule of the loop belongs here."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

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
