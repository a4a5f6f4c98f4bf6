"""Proposals: the list, and the page on which a change is judged: why, what, flags, threads and the diff."""

from dataclasses import asdict
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import proposals as proposal_actions
from evolution.actions.reviews import Place
from evolution.actors import Role
from evolution.loop.repositories import open_repository
from evolution.models import Proposal
from evolution.queries import clusters as cluster_queries
from evolution.queries import proposals as proposal_queries
from evolution.queries.exchanges import list_alternatives, list_drafting
from evolution.queries.reviews import may_approve_alone, read_standing, summarise
from evolution.states import JobKind, ProposalState
from harness_repo.git.errors import HarnessRepoError
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.branch_log import Span, count_since_draft, list_commits, read_span
from workbench.branch_view import view_branch
from workbench.diff_page import DiffPage, show_diff
from workbench.forms import first_error, read_reason
from workbench.proposal_brief import describe_brief
from workbench.proposal_list import arrange, read_order
from workbench.proposal_parts import describe_parts
from workbench.rendering import refresh_when_done, render_page, wanted_part
from workbench.review_flags import count_flags
from workbench.review_forms import InstructionForm
from workbench.review_notes import ReviewNotes, read_notes
from workbench.review_places import locate_notes

# The states in which a person may still change the files.
UNDER_REVIEW = {ProposalState.DRAFTED, ProposalState.CONFIRMED}


@require_safe
def proposal_list(request: Request, harness: str) -> HttpResponse:
    """List proposals, those that wait for review first, or in the order asked for."""
    record = get_harness_for(request, harness)
    state, order = request.GET.get("state", "live"), read_order(request.GET)
    proposals = list(proposal_queries.list_proposals(record, state))
    rows = arrange(proposals, summarise(proposals), count_flags(proposals), order)
    context = {
        "rows": rows,
        "order": order,
        "conflicting": proposal_queries.find_conflicting(proposals),
        "state": state,
        "states": ProposalState.choices,
    }
    return render_page(request, "proposals.html", context, record)


def get_proposal(request: Request, harness: str, pk: int) -> Proposal:
    """The proposal with what its page needs, or 404."""
    proposals = Proposal.objects.select_related(
        "harness", "diagnosis__cluster", "step", "alone_base", "alone_candidate"
    )
    return get_for(request, harness, proposals, pk=pk)


@require_safe
def proposal_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show why, what and how of a proposal, for a person to judge."""
    return show_proposal(request, get_proposal(request, harness, pk))


def show_proposal(request: Request, proposal: Proposal, **kept: Any) -> HttpResponse:
    """The page of a proposal; `kept` is what was typed into a form of it and refused."""
    job = cluster_queries.latest_job(proposal.harness, JobKind.DRAFT, proposal.pk)
    running = cluster_queries.is_running(job)
    if response := refresh_when_done(request, running=running):
        return response
    if wanted_part(request) == "progress":
        progress = {"proposal": proposal, "job": job, "is_running": running}
        return render_page(request, "proposal.html", progress, proposal.harness)
    notes, commits = read_notes(proposal), list_commits(proposal)
    span = read_span(proposal, commits, request.GET)
    diff, problem = _read_diff(request, proposal, notes, span)
    if diff and (place := _find_place(diff, request.GET.get("at", ""))):
        return redirect(f"{_comment_address(proposal)}?{urlencode(asdict(place))}")
    quotes = cluster_queries.list_quotes(proposal.diagnosis) if proposal.diagnosis else []
    context: dict[str, Any] = {
        "proposal": proposal,
        "job": job,
        "is_running": running,
        "quotes": quotes,
        "commits": commits,
        "words_before": count_since_draft(commits),
        "span": span,
        "keys_of": "proposal",
    }
    located, parts = locate_notes(notes, diff), describe_parts(proposal)
    context |= {
        "diff": diff,
        "located": located,
        "diff_problem": problem,
        "first_path": diff.files[0].path if diff and diff.files else "",
    }
    context |= _read_review(request, proposal, notes) | _read_forecast(proposal)
    context |= parts | describe_brief(proposal, located.flags, parts["history"])
    context |= {"branch": view_branch(proposal)}
    context |= {"drafting": list_drafting(proposal), "alternatives": list_alternatives(proposal)} | kept
    return render_page(request, "proposal.html", context, proposal.harness)


def _read_review(request: Request, proposal: Proposal, notes: ReviewNotes) -> dict[str, Any]:
    standing, name = read_standing(proposal), actor_of(request).name
    return {
        "standing": standing,
        "notes": notes,
        "is_mine": any(review.reviewer == name for review in standing.approvals),
        "is_alone_enough": may_approve_alone(proposal, name),
        "under_review": proposal.state in UNDER_REVIEW,
        "whole": Place(),
        "comment_address": _comment_address(proposal),
    }


def _read_forecast(proposal: Proposal) -> dict[str, Any]:
    forecast = proposal_queries.foresee_merge(proposal)
    return {"forecast": forecast, "conflict": forecast.conflict if forecast else None}


def _read_diff(
    request: Request, proposal: Proposal, notes: ReviewNotes, span: Span
) -> tuple[DiffPage | None, str]:
    if not proposal.head_commit:
        return None, ""
    repository = open_repository(proposal.harness)
    address = reverse("proposal_file", args=[proposal.harness.name, proposal.pk])
    may_comment = actor_of(request).role >= Role.ANNOTATOR
    try:
        diff = show_diff(
            request,
            repository,
            span.base,
            span.head,
            address=address + span.query,
            # Lines are counted in the whole change; a part of it has other ones.
            notes=None if span.is_part else notes.places,
            comment_address=_comment_address(proposal) if may_comment and not span.is_part else "",
        )
    except (HarnessRepoError, ValueError) as error:
        return None, str(error)
    return diff, ""


def _comment_address(proposal: Proposal) -> str:
    return reverse("proposal_comment", args=[proposal.harness.name, proposal.pk])


def _find_place(diff: DiffPage, anchor: str) -> Place | None:
    """The line whose number was pressed without scripts; its form is a page of its own."""
    row: Any = diff.find_row(anchor)
    if row is None:
        return None
    side = getattr(row, "side", "new")
    return Place(row.old_path if side == "old" else row.path, side, getattr(row, "line", 0) or 0)


@require_POST
def amend(request: Request, harness: str, pk: int) -> HttpResponse:
    """Have a draft that failed made again, with an instruction."""
    proposal = get_proposal(request, harness, pk)
    form = InstructionForm(request.POST)
    if form.is_valid():
        with told(request):
            proposal_actions.amend_proposal(actor_of(request), proposal, form.cleaned_data["feedback"])
    else:
        messages.error(request, first_error(form))
    return redirect("proposal", harness, pk)


@require_POST
def reject(request: Request, harness: str, pk: int) -> HttpResponse:
    """Reject a proposal for good, with a reason."""
    proposal = get_proposal(request, harness, pk)
    with told(request, _("The proposal is rejected.")):
        proposal_actions.reject_proposal(actor_of(request), proposal, read_reason(request.POST))
    return redirect("proposal", harness, pk)
