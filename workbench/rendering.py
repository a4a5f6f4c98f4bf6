"""Renders a page, or the part of it that htmx asked for, with what every page needs around it."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRefresh, trigger_client_event

from evolution.actors import Role
from evolution.adapters.chat import model_name
from evolution.models import Harness
from evolution.states import HarnessKind
from workbench.access import actor_of


def model_in_use(harness: Harness | None = None) -> str:
    """The model that runs the harness now: as the judge, or as the policy that answers."""
    role = "judge" if harness is not None and harness.kind == HarnessKind.JUDGE else "policy"
    return model_name(role)


def render_page(
    request: HttpRequest, template: str, context: dict[str, Any], harness: Harness | None = None
) -> HttpResponse:
    """Render `template`, or its partial named like the element that htmx will replace."""
    actor = actor_of(request)
    around: dict[str, Any] = {
        "harness": harness,
        "actor": actor,
        "may": {role.name.lower(): actor.role >= role for role in Role},
        "model_in_use": model_in_use(harness),
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


def answer_watch(request: HttpRequest, stamp: str) -> HttpResponse | None:
    """Answer the poll of parts/watch.html: nothing, or the event that says that the page shows the past."""
    htmx = getattr(request, "htmx", None)
    if not htmx or htmx.target != "watch":
        return None
    answer = HttpResponse(status=HTTPStatus.NO_CONTENT)
    return answer if request.GET.get("seen", "") == stamp else trigger_client_event(answer, "stale")


def _wanted_part(request: HttpRequest) -> str:
    htmx = getattr(request, "htmx", None)
    if not htmx or htmx.boosted or htmx.history_restore_request:
        return ""
    # Only the names that our pages use: the header is the browser's to write.
    return htmx.target if htmx.target in {"progress", "results"} else ""
