"""A proposal's branch outside the workbench: pushed, looked for, decided about, and as the text of a pull request."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import branches as branch_actions
from evolution.errors import LoopError
from evolution.loop.proposal_flags import flag_proposal
from evolution.loop.pull_requests import PullRequest, write_pull_request
from evolution.models import Proposal
from workbench.access import Request, actor_of, get_for, told
from workbench.branch_view import view_branch
from workbench.rendering import render_page

_CHOICES = {
    "acknowledge": branch_actions.acknowledge_outside,
    "theirs": branch_actions.take_theirs,
    "ours": branch_actions.keep_ours,
}


def _get(request: Request, harness: str, pk: int) -> Proposal:
    proposals = Proposal.objects.select_related(
        "harness",
        "diagnosis__cluster",
        "alone_base",
        "alone_candidate",
        "step__base_evaluation",
        "step__candidate_evaluation",
        "step__verdict",
    )
    return get_for(request, harness, proposals, pk=pk)


@require_POST
def push(request: Request, harness: str, pk: int) -> HttpResponse:
    """Have the branch pushed to the remote."""
    proposal = _get(request, harness, pk)
    with told(request, _("The branch is being pushed.")):
        branch_actions.start_push(actor_of(request), proposal)
    return redirect("proposal", harness, pk)


@require_POST
def fetch(request: Request, harness: str, pk: int) -> HttpResponse:
    """Look for what others have added to the branches of proposals on the remote."""
    proposal = _get(request, harness, pk)
    with told(request, _("The remote's branches are being fetched.")):
        branch_actions.start_fetch(actor_of(request), proposal.harness)
    return redirect("proposal", harness, pk)


@require_POST
def decide(request: Request, harness: str, pk: int) -> HttpResponse:
    """Say that a change from outside was looked at, or which of two histories counts."""
    proposal = _get(request, harness, pk)
    with told(request, _("Done.")):
        actor_of(request).require(branch_actions.NEEDED)
        choose = _CHOICES.get(request.POST.get("choice", ""))
        if choose is None:
            raise LoopError(_("say which history counts"))
        choose(actor_of(request), proposal, request.POST.get("head", "").replace("\0", "")[:40])
    return redirect("proposal", harness, pk)


@require_safe
def pull_request(request: Request, harness: str, pk: int) -> HttpResponse:
    """The text of a pull request, to copy; `?part=body` or `?part=title` gives it as plain text."""
    proposal = _get(request, harness, pk)
    text = _write_text(request, proposal)
    if text is None:
        return redirect("proposal", harness, pk)
    part = {"body": text.body, "title": text.title}.get(request.GET.get("part", ""))
    if part is not None:
        return HttpResponse(part, content_type="text/plain; charset=utf-8")
    context = {"proposal": proposal, "text": text, "branch": view_branch(proposal)}
    return render_page(request, "pull_request.html", context, proposal.harness)


def _write_text(request: Request, proposal: Proposal) -> PullRequest | None:
    """The text; None, and a message, when there is no version that can be read."""
    address = request.build_absolute_uri(reverse("proposal", args=[proposal.harness.name, proposal.pk]))
    with told(request):
        if not proposal.head_commit:
            raise LoopError(_("there is no version yet"))
        return write_pull_request(proposal, flag_proposal(proposal), address)
    return None
