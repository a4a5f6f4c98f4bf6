"""Sources of a harness: the list, one with its settings and how to push to it, and its token, shown once."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import sources as source_actions
from evolution.actors import Role
from evolution.adapters.formats.detect import FORMATS
from evolution.loop.failure_rules import PUSHED, RULE_HELP, from_json, parse_rule
from evolution.models import Source
from evolution.queries import sources as source_queries
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import SourceForm, SourceNameForm, read_form
from workbench.rendering import render_page


@require_safe
def source_list(request: Request, harness: str) -> HttpResponse:
    """List the sources with what came from them."""
    record = get_harness_for(request, harness)
    context = {"lines": source_queries.list_sources(record), "days": source_queries.DAYS}
    return render_page(request, "sources.html", context, record)


@require_POST
def create(request: Request, harness: str) -> HttpResponse:
    """Make a source, and show its token in the answer: it is kept nowhere."""
    record = get_harness_for(request, harness)
    created = None
    with told(request, _("The source is there. Copy its token now: it is not shown again.")):
        name = read_form(SourceNameForm(request.POST))["name"]
        created = source_actions.create_source(actor_of(request), record, name)
    return _show(request, *created) if created else redirect("sources", record.name)


@require_safe
def source_page(request: Request, harness: str, name: str) -> HttpResponse:
    """Show a source."""
    return _show(request, get_for(request, harness, Source, name=name))


@require_POST
def change(request: Request, harness: str, name: str) -> HttpResponse:
    """Say how it is read, and what counts as a failure."""
    source = get_for(request, harness, Source, name=name)
    with told(request, _("Saved; it counts for what comes from now on.")):
        actor_of(request).require(Role.DEVELOPER)
        fields = read_form(SourceForm(request.POST))
        rule = parse_rule(fields["rule"]) if fields["rule"].strip() else None
        source_actions.change_source(
            actor_of(request), source, fmt=fields["format"], rule=rule, mapping=fields["mapping"]
        )
    return redirect("source", harness, name)


@require_POST
def rotate(request: Request, harness: str, name: str) -> HttpResponse:
    """Give it a new token, shown in the answer."""
    source, token = get_for(request, harness, Source, name=name), ""
    with told(request, _("This is the new token. Copy it now: it is not shown again.")):
        token = source_actions.rotate_token(actor_of(request), source)
    return _show(request, source, token) if token else redirect("source", harness, name)


@require_POST
def switch(request: Request, harness: str, name: str) -> HttpResponse:
    """Let it push, or not any more."""
    source = get_for(request, harness, Source, name=name)
    with told(request):
        source_actions.set_enabled(actor_of(request), source, is_enabled="on" in request.POST)
    return redirect("source", harness, name)


def _show(request: Request, source: Source, token: str = "") -> HttpResponse:
    context = {
        "source": source,
        "line": source_queries.source_line(source),
        "waiting": source_queries.count_waiting(source),
        "traces": source_queries.count_assembled(source),
        "days": source_queries.DAYS,
        "token": token,
        "cases_url": request.build_absolute_uri(reverse("api-1:push")),
        "traces_url": request.build_absolute_uri(reverse("otlp_traces")),
        "formats": FORMATS,
        "rule": from_json(source.rule, PUSHED),
        "rule_help": RULE_HELP,
        "mapping": "\n".join(f"{ours} = {theirs}" for ours, theirs in source.mapping.items()),
    }
    response = render_page(request, "source.html", context, source.harness)
    if token:
        response.headers["Cache-Control"] = "no-store"
    return response
