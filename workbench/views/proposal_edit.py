"""A proposal's files edited by hand: one file in a field, what would be wrong with it, and how the change would look.

What was typed is kept when it is refused, and when somebody moved the branch meanwhile.
"""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from evolution.actions import proposals as proposal_actions
from evolution.actors import NotAllowed, Role
from evolution.errors import LoopError, StaleState
from evolution.models import Proposal
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.storable import is_storable
from workbench.access import Request, actor_of, told
from workbench.forms import first_error
from workbench.rendering import render_page
from workbench.review_forms import FileForm
from workbench.typed_file import (
    Checked,
    Standing,
    Typed,
    check_typed,
    read_standing,
    read_typed,
    view_others_change,
)
from workbench.views.proposals import UNDER_REVIEW, get_proposal


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: Request, harness: str, pk: int) -> HttpResponse:
    """Edit, create, move or delete one file of a proposal; a refused edit keeps what was typed."""
    proposal = get_proposal(request, harness, pk)
    if proposal.state not in UNDER_REVIEW:
        messages.error(request, _("This proposal is no longer under review, so its files can't be edited."))
        return redirect("proposal", harness, pk)
    typed = read_typed(request.POST) if request.method == "POST" else None
    if typed is not None and _save(request, proposal, typed):
        return redirect("proposal", harness, pk)
    with told(request):
        standing = read_standing(proposal)
        return _show_form(request, proposal, standing, typed)
    # Git has the files no longer.
    return redirect("proposal", harness, pk)


@require_POST
def check(request: Request, harness: str, pk: int) -> HttpResponse:
    """What saving the form would do, while it is typed; nothing is written."""
    proposal = get_proposal(request, harness, pk)
    _check_may_edit(request)
    typed = read_typed(request.POST)
    with told(request):
        standing = read_standing(proposal)
        context = _describe(proposal, standing, typed, check_typed(typed, standing))
        template = "parts/edit_check.html" if request.htmx else "proposal_edit.html"
        return render_page(request, template, context, proposal.harness)
    return redirect("proposal", harness, pk)


def _check_may_edit(request: Request) -> None:
    try:
        actor_of(request).require(Role.DEVELOPER)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal


def _save(request: Request, proposal: Proposal, typed: Typed) -> bool:
    """Commit what was typed; False, and a message, when it is refused."""
    form = FileForm(request.POST)
    if not form.is_valid():
        messages.error(request, first_error(form))
        return False
    with told(request, _("Saved as a new commit on the proposal's branch.")):
        _refuse_faults(proposal, typed, is_deletion="delete" in request.POST)
        _commit(request, proposal, typed, is_deletion="delete" in request.POST)
        return True
    return False


def _refuse_faults(proposal: Proposal, typed: Typed, *, is_deletion: bool) -> None:
    """Raise LoopError for what the page lists beside the field; what else stands against it the action says."""
    standing = read_standing(proposal)
    # Where somebody moved the branch, that is what to say.
    if not is_deletion and typed.expected_head == standing.head and check_typed(typed, standing).is_refused:
        raise LoopError(_("nothing is saved yet; what stands against it is listed beside the field"))


def _commit(request: Request, proposal: Proposal, typed: Typed, *, is_deletion: bool) -> None:
    try:
        proposal_actions.edit_file(
            actor_of(request),
            proposal,
            typed.path or typed.target,
            None if is_deletion else typed.content,
            typed.expected_head,
            new_path="" if is_deletion else typed.target,
            message=typed.message,
        )
    except StaleState as error:
        raise StaleState(_("somebody moved the branch while you typed; nothing is saved yet")) from error


def _show_form(request: Request, proposal: Proposal, standing: Standing, typed: Typed | None) -> HttpResponse:
    if typed is None:
        path = request.GET.get("path", "")
        content = standing.files.get(path, b"").decode("utf-8", "replace")
        typed = Typed(path if path in standing.files else "", path, content, expected_head=standing.head)
        checked = Checked()
    else:
        checked = check_typed(typed, standing)
    context = _describe(proposal, standing, typed, checked)
    if typed.expected_head != standing.head:
        context["others_change"] = _try_others_change(proposal, typed, standing)
        context["has_moved"] = True
    return render_page(request, "proposal_edit.html", context, proposal.harness)


def _try_others_change(proposal: Proposal, typed: Typed, standing: Standing) -> list[Any]:
    try:
        return view_others_change(proposal, typed, standing)
    except HarnessRepoError:
        return []


def _describe(proposal: Proposal, standing: Standing, typed: Typed, checked: Checked) -> dict[str, Any]:
    return {
        "proposal": proposal,
        "typed": typed,
        "head": standing.head,
        "checked": checked,
        # A name that is not UTF-8 can't stand in an address.
        "paths": sorted(filter(is_storable, standing.files)),
        "changed": {path for path, data in standing.files.items() if standing.base.get(path) != data},
    }
