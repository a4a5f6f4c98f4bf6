"""Who may do what for a harness, and what its operators say about that."""

from dataclasses import dataclass

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import people as people_actions
from evolution.errors import LoopError
from evolution.queries import people as people_queries
from evolution.states import RoleName
from workbench.access import Request, actor_of, get_harness_for, told
from workbench.rendering import render_page


@dataclass(frozen=True)
class PersonLine:
    """A person on the page, with what the form's choice stands at."""

    person: people_queries.Person
    # "" where the general role counts
    chosen: str
    is_self: bool


@require_safe
def people(request: Request, harness: str) -> HttpResponse:
    """List those who can sign in, with their roles for the harness."""
    record = get_harness_for(request, harness)
    name = actor_of(request).name
    lines = [
        PersonLine(person, person.own.name.lower() if person.own is not None else "", is_self)
        for person in people_queries.list_roles(record)
        for is_self in [person.user.get_username() == name]
    ]
    context = {"lines": lines, "roles": RoleName.choices, "needs_second": record.needs_second_reviewer}
    return render_page(request, "people.html", context, record)


@require_POST
def set_role(request: Request, harness: str) -> HttpResponse:
    """Give somebody a role for the harness; an empty one has their general role count again."""
    record = get_harness_for(request, harness)
    actor = actor_of(request)
    with told(request, _("The role is changed.")):
        actor.require(people_actions.NEEDED)
        user = people_queries.find_person(request.POST.get("person", "").replace("\0", "")[:150])
        if user is None:
            raise LoopError(_("say whose role it is"))
        role = request.POST.get("role", "")
        if role in RoleName.values:
            people_actions.set_role(actor, record, user, RoleName(role))
        elif role:
            raise LoopError(_("there is no such role"))
        else:
            people_actions.remove_role(actor, record, user)
    return redirect("people", harness)


@require_POST
def set_review_policy(request: Request, harness: str) -> HttpResponse:
    """Say whether proposals need a second reviewer."""
    record = get_harness_for(request, harness)
    with told(request, _("Saved; it counts for approvals from now on.")):
        is_needed = "second" in request.POST
        people_actions.set_second_reviewer(actor_of(request), record, is_needed=is_needed)
    return redirect("people", harness)
