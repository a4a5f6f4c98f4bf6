"""What was live when, and the way back."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import releases as release_actions
from evolution.models import Release
from evolution.queries import releases as release_queries
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import read_reason
from workbench.rendering import render_page


@require_safe
def release_list(request: Request, harness: str) -> HttpResponse:
    """List releases, the live one first."""
    record = get_harness_for(request, harness)
    context = {
        "releases": release_queries.list_releases(record),
        "unreleased": release_queries.unreleased_main(record),
    }
    return render_page(request, "releases.html", context, record)


@require_POST
def roll_back(request: Request, harness: str, number: int) -> HttpResponse:
    """Make an earlier release live again, as a new commit."""
    release = get_for(request, harness, Release, number=number)
    record = get_harness_for(request, harness)
    with told(request, _("Rolled back.")):
        release_actions.roll_back(actor_of(request), record, release, read_reason(request.POST))
    return redirect("releases", record.name)
