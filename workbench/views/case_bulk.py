"""Buttons over the list of cases: something is done to the rows that are ticked, or to all that pass the filters."""

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from evolution.actions import bulk
from evolution.actions.bulk import Chosen
from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.models import BulkAction, Cluster, Harness
from evolution.queries.case_filters import CaseFilter
from evolution.queries.cases import find_ids
from evolution.queries.people import find_person
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import BulkForm, CaseFilterForm, read_form
from workbench.inbox import list_query
from workbench.last_bulk import keep_last_bulk
from workbench.views.case_dataset import ask_about

# Ids that a link can name: web servers take an address of 4,000 characters.
MOST_IN_ADDRESS = 300

# Ids of ticked rows, or what all cases pass that are meant.
Selection = list[int] | CaseFilter
Deed = Callable[[Actor, Harness, Chosen, dict[str, Any]], BulkAction]


@require_POST
def case_bulk(request: Request, harness: str) -> HttpResponse:
    """Do what the button says to the chosen cases, and come back to the list as it was."""
    record = get_harness_for(request, harness)
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
        given = read_form(BulkForm(request.POST))
        if given["verb"] == "dataset":
            return _to_dataset(request, record, given)
        selection = read_selection(request, given)
        chosen = find_ids(record, selection) if isinstance(selection, CaseFilter) else selection
        action = _DEEDS[given["verb"]](actor_of(request), record, chosen, given)
        keep_last_bulk(request, action)
        messages.success(request, describe_bulk(action))
    return _back_to_list(request, record)


@require_POST
def undo(request: Request, harness: str, pk: int) -> HttpResponse:
    """Take a bulk action back."""
    action = get_for(request, harness, BulkAction, pk=pk)
    with told(request):
        restored = bulk.undo_bulk(actor_of(request), action)
        left = action.count - restored
        said = (
            ngettext("%d case is as it was before.", "%d cases are as they were before.", restored) % restored
        )
        if left:
            others = ngettext(
                "%d was changed since, and is left alone.", "%d were changed since, and are left alone.", left
            )
            said = f"{said} {others % left}"
        messages.success(request, said)
    return _back_to_list(request, get_harness_for(request, harness))


def read_selection(request: Request, given: dict[str, Any]) -> Selection:
    """The ticked rows, or what all cases pass that are meant. Raises LoopError when no row is ticked."""
    if given["all"]:
        query = request.GET.copy()
        query["upto"] = str(given["upto"] or 0)
        return CaseFilterForm(query).wanted_strictly()
    ids = read_ids(request.POST)
    if not ids:
        raise LoopError(_("no case is chosen"))
    return ids


def read_ids(posted: QueryDict) -> list[int]:
    """The ids of the ticked rows; the map sends thousands of them in one field, with commas."""
    ids = [pk for field in posted.getlist("ids") for pk in field.split(",")]
    return [int(pk) for pk in ids if pk.isascii() and pk.isdigit() and len(pk) < 19]


def _back_to_list(request: Request, harness: Harness) -> HttpResponseRedirect:
    """The list with the same filters, at the same place; or the page that had the button, when that was another."""
    back = request.POST.get("back", "")
    own = reverse("board", args=[harness.name])
    if back.startswith(own) and url_has_allowed_host_and_scheme(back, allowed_hosts=None):
        return redirect(back)
    query = QueryDict(list_query(request.GET), mutable=True)
    for place in ("before", "after"):
        if request.GET.get(place):
            query[place] = request.GET[place]
    address = reverse("cases", args=[harness.name])
    return redirect(f"{address}?{query.urlencode()}" if query else address)


def _to_dataset(request: Request, harness: Harness, given: dict[str, Any]) -> HttpResponse:
    """The page that asks how cases are to stand in a dataset; more than an address holds are asked about at once."""
    if not given["all"] and len(read_ids(request.POST)) > MOST_IN_ADDRESS:
        return ask_about(request, harness)
    query = QueryDict(list_query(request.GET), mutable=True)
    if given["all"]:
        # What comes in while the form is filled in is not among them.
        query["all"], query["upto"] = "1", str(given["upto"] or 0)
    else:
        query["ids"] = ",".join(map(str, read_ids(request.POST)))
    return redirect(f"{reverse('cases_dataset', args=[harness.name])}?{query.urlencode()}")


def describe_bulk(action: BulkAction) -> str:
    """What was done to how many cases."""
    n = action.count
    said = {
        "ignore": ngettext("%d case is ignored.", "%d cases are ignored.", n),
        "reopen": ngettext("%d case is open again.", "%d cases are open again.", n),
        "tag": ngettext("%d case has the tag now.", "%d cases have the tag now.", n),
        "untag": ngettext("%d case has lost the tag.", "%d cases have lost the tag.", n),
        "assign": ngettext("%d case is assigned.", "%d cases are assigned.", n),
        "move": ngettext("%d case is moved.", "%d cases are moved.", n),
    }
    return said[action.verb] % n


def _ignore(actor: Actor, harness: Harness, chosen: Chosen, given: dict[str, Any]) -> BulkAction:
    return bulk.ignore_cases(actor, harness, chosen, given["reason"])


def _reopen(actor: Actor, harness: Harness, chosen: Chosen, _given: dict[str, Any]) -> BulkAction:
    return bulk.reopen_cases(actor, harness, chosen)


def _tag(actor: Actor, harness: Harness, chosen: Chosen, given: dict[str, Any]) -> BulkAction:
    return bulk.tag_cases(actor, harness, chosen, given["tag"])


def _untag(actor: Actor, harness: Harness, chosen: Chosen, given: dict[str, Any]) -> BulkAction:
    return bulk.untag_cases(actor, harness, chosen, given["tag"])


def _assign(actor: Actor, harness: Harness, chosen: Chosen, given: dict[str, Any]) -> BulkAction:
    return bulk.assign_cases(actor, harness, chosen, find_person(given["person"]))


def _move(actor: Actor, harness: Harness, chosen: Chosen, given: dict[str, Any]) -> BulkAction:
    number = given["number"]
    cluster = Cluster.objects.filter(harness=harness, number=number).first() if number else None
    if number and cluster is None:
        raise LoopError(_("there is no such cluster"))
    return bulk.move_to_cluster(actor, harness, chosen, cluster)


_DEEDS: dict[str, Deed] = {
    "ignore": _ignore,
    "reopen": _reopen,
    "tag": _tag,
    "untag": _untag,
    "assign": _assign,
    "move": _move,
}
