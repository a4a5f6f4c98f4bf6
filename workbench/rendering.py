"""Renders a page, or the part of it that htmx asked for, with what every page needs around it."""

from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django_htmx.http import HttpResponseClientRefresh, trigger_client_event

from evolution.actors import Role
from evolution.adapters.chat import model_name
from evolution.loop.runners import describe_runner
from evolution.models import Harness
from evolution.states import HarnessKind
from workbench.access import actor_of
from workbench.rehearsal import Cast, cast_in_use


def model_in_use(harness: Harness | None = None) -> str:
    """What runs the harness now: the model of the judge, that of the policy, or an agent that is not ours."""
    if harness is None:
        return model_name("policy")
    if harness.kind == HarnessKind.JUDGE:
        return model_name("judge")
    return describe_runner(harness.runner) or model_name("policy")


def _cast_in_use(harness: Harness | None, model: str) -> Cast:
    """Which parts the rehearsal model would play in an evaluation that is made now."""
    if harness is None or harness.kind == HarnessKind.JUDGE:
        return cast_in_use(model, model)
    return cast_in_use("" if harness.runner else model, model_name("judge"))


def render_page(
    request: HttpRequest, template: str, context: dict[str, Any], harness: Harness | None = None
) -> HttpResponse:
    """Render `template`, or its partial named like the element that htmx will replace."""
    actor = actor_of(request)
    model = model_in_use(harness)
    around: dict[str, Any] = {
        "harness": harness,
        "actor": actor,
        "may": {role.name.lower(): actor.role >= role for role in Role},
        "model_in_use": model,
        "cast_in_use": _cast_in_use(harness, model),
    }
    part = wanted_part(request)
    if not part:
        around["harnesses"] = list(Harness.objects.order_by("kind", "name"))
    return render(request, f"{template}#{part}" if part else template, around | context)


def refresh_when_done(request: HttpRequest, *, running: bool) -> HttpResponse | None:
    """Answer a progress poll after the end of the work by having the browser load the whole page again."""
    if wanted_part(request) == "progress" and not running:
        return HttpResponseClientRefresh()
    return None


def answer_watch(request: HttpRequest, stamp: str) -> HttpResponse | None:
    """Answer the poll of parts/watch.html: nothing, or the event that says that the page shows the past."""
    htmx = getattr(request, "htmx", None)
    if not htmx or htmx.target != "watch":
        return None
    answer = HttpResponse(status=HTTPStatus.NO_CONTENT)
    return answer if request.GET.get("seen", "") == stamp else trigger_client_event(answer, "stale")


def wanted_part(request: HttpRequest) -> str:
    """The id of the element that htmx will replace with this answer; empty for a whole page."""
    htmx = getattr(request, "htmx", None)
    if not htmx or htmx.boosted or htmx.history_restore_request:
        return ""
    # Only the names that our pages use: the header is the browser's to write.
    return (
        htmx.target
        if htmx.target in {"progress", "details", "results", "chosen", "estimate", "counts"}
        else ""
    )
