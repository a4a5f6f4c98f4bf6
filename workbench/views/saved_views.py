"""Views of the inbox: saved from its filters, and taken away."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evolution.actions.views import delete_view, save_view
from evolution.models import SavedView
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import CaseFilterForm, SavedViewForm, read_form
from workbench.inbox import list_query


@require_POST
def save(request: Request, harness: str) -> HttpResponse:
    """Save the filters of the list under a name."""
    record = get_harness_for(request, harness)
    query = list_query(request.GET)
    with told(request, _("The view is saved.")):
        CaseFilterForm(request.GET).wanted_strictly()
        given = read_form(SavedViewForm(request.POST))
        shared, default = given["is_shared"], given["is_default"]
        save_view(actor_of(request), record, given["name"], query, is_shared=shared, is_default=default)
    address = reverse("cases", args=[record.name])
    return redirect(f"{address}?{query}" if query else address)


@require_POST
def delete(request: Request, harness: str, pk: int) -> HttpResponse:
    """Take a view away."""
    view = get_for(request, harness, SavedView, pk=pk)
    with told(request, _("The view is gone.")):
        delete_view(actor_of(request), view)
    return redirect(f"{reverse('cases', args=[harness])}?state=open")
