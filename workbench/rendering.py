"""Renders a page, or the part of it that htmx asked for, with what every page needs around it."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRefresh

from evolution.actors import Role
from evolution.models import Harness
from workbench.access import actor_of

REHEARSAL_MODEL = "rehearsal-policy"


def model_in_use() -> str:
    """The model that answers as the policy now."""
    return settings.LLM_MODEL_POLICY if settings.LLM_BASE_URL else REHEARSAL_MODEL


def render_page(
    request: HttpRequest, template: str, context: dict[str, Any], harness: Harness | None = None
) -> HttpResponse:
    """Render `template`, or its partial named like the element that htmx will replace."""
    actor = actor_of(request)
    around: dict[str, Any] = {
        "harness": harness,
        "actor": actor,
        "may": {role.name.lower(): actor.role >= role for role in Role},
        "model_in_use": model_in_use(),
    }
    part = _wanted_part(request)
    if not part:
        around["harnesses"] = list(Harness.objects.order_by("kind", "name"))
    return render(request, f"{template}#{part}" if part else template, around | context)


def refresh_when_done(request: HttpRequest, *, running: bool) -> HttpResponse | None:
    """Answer a progress poll after the end of the work by having the browser load the whole page again."""
    if _wanted_part(request) == "progress" and not running:
        return HttpResponseClientRefresh()
    return None


def _wanted_part(request: HttpRequest) -> str:
    htmx = getattr(request, "htmx", None)
    if not htmx or htmx.boosted or htmx.history_restore_request:
        return ""
    # Only the names that our pages use: the header is the browser's to write.
    return htmx.target if htmx.target in {"progress", "results"} else ""
