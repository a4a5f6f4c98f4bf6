"""A proposal evaluated by itself: started, and followed on a page of its own or as a part of the proposal's."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import proposal_evaluation as actions
from evolution.models import Proposal
from workbench.access import Request, actor_of, get_for, told
from workbench.proposal_parts import describe_alone, describe_parts
from workbench.rendering import render_page


def _get(request: Request, harness: str, pk: int) -> Proposal:
    proposals = Proposal.objects.select_related("harness", "alone_base", "alone_candidate")
    return get_for(request, harness, proposals, pk=pk)


@require_safe
def alone_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show what a proposal does by itself; htmx is given the parts that change while it is measured."""
    proposal = _get(request, harness, pk)
    if getattr(request, "htmx", False):
        context = {"proposal": proposal, **describe_alone(proposal)}
        return render_page(request, "parts/alone_answer.html", context, proposal.harness)
    context = {"proposal": proposal, **describe_parts(proposal)}
    return render_page(request, "proposal_alone.html", context, proposal.harness)


@require_POST
def evaluate(request: Request, harness: str, pk: int) -> HttpResponse:
    """Evaluate the branch of a proposal and its base."""
    proposal = _get(request, harness, pk)
    with told(request, _("The proposal is being evaluated alone.")):
        actions.evaluate_proposal(actor_of(request), proposal)
    return redirect("proposal", harness, pk)
