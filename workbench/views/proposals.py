"""Proposals: the list, the review page (why, what, diff), and the reviewer's actions."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evolution.actions import proposals as proposal_actions
from evolution.loop.repositories import open_repository
from evolution.models import Harness, Proposal
from evolution.queries import clusters as cluster_queries
from evolution.queries import proposals as proposal_queries
from evolution.states import JobKind, ProposalState
from harness_repo.git.diffs import parse_diff
from harness_repo.git.errors import HarnessRepoError
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.diff_view import FileView, view_diff
from workbench.forms import FileForm, InstructionForm, first_error, read_reason
from workbench.rendering import refresh_when_done, render_page

# The states in which a person may still change the files.
UNDER_REVIEW = {ProposalState.DRAFTED, ProposalState.CONFIRMED}


@require_safe
def proposal_list(request: Request, harness: str) -> HttpResponse:
    """List proposals, those that wait for review first."""
    record = get_harness_for(request, harness)
    state = request.GET.get("state", "live")
    proposals = list(proposal_queries.list_proposals(record, state))
    context = {
        "proposals": proposals,
        "conflicting": proposal_queries.find_conflicting(proposals),
        "state": state,
        "states": ProposalState.choices,
    }
    return render_page(request, "proposals.html", context, record)


def _get(request: Request, harness: str, pk: int) -> Proposal:
    proposals = Proposal.objects.select_related("harness", "diagnosis__cluster", "step")
    return get_for(request, harness, proposals, pk=pk)


@require_safe
def proposal_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show why, what and how of a proposal, for a person to judge."""
    proposal = _get(request, harness, pk)
    job = cluster_queries.latest_job(proposal.harness, JobKind.DRAFT, proposal.pk)
    running = cluster_queries.is_running(job)
    if response := refresh_when_done(request, running=running):
        return response
    files, problem = _read_diff(proposal)
    manifest = proposal.manifest
    forecast = proposal_queries.foresee_merge(proposal)
    context = {
        "proposal": proposal,
        "forecast": forecast,
        "conflict": forecast.conflict if forecast else None,
        "job": job,
        "is_running": running,
        "files": files,
        "diff_problem": problem,
        "quotes": cluster_queries.list_quotes(proposal.diagnosis) if proposal.diagnosis else [],
        "expected_fixes": _named(proposal.harness, manifest.get("expected_fixes")),
        "at_risk": _named(proposal.harness, manifest.get("at_risk")),
    }
    return render_page(request, "proposal.html", context, proposal.harness)


def _named(harness: Harness, references: object) -> list[proposal_queries.NamedCase]:
    return proposal_queries.name_cases(harness, references if isinstance(references, list) else [])


def _read_diff(proposal: Proposal) -> tuple[list[FileView], str]:
    if not proposal.head_commit:
        return [], ""
    try:
        text = open_repository(proposal.harness).diff(proposal.base_commit, proposal.head_commit)
        return view_diff(parse_diff(text)), ""
    except (HarnessRepoError, ValueError) as error:
        return [], str(error)


@require_POST
def confirm(request: Request, harness: str, pk: int) -> HttpResponse:
    """Confirm a proposal, so that a step can take it."""
    proposal = _get(request, harness, pk)
    with told(request, _("Confirmed. A step can be started with it.")):
        reason, reviewed = read_reason(request.POST), request.POST.get("reviewed", "")
        proposal_actions.confirm_proposal(actor_of(request), proposal, reason, reviewed=reviewed)
    return redirect("proposal", harness, pk)


@require_POST
def amend(request: Request, harness: str, pk: int) -> HttpResponse:
    """Send a proposal back to the editor with an instruction."""
    proposal = _get(request, harness, pk)
    form = InstructionForm(request.POST)
    if form.is_valid():
        with told(request):
            proposal_actions.amend_proposal(actor_of(request), proposal, form.cleaned_data["feedback"])
    else:
        messages.error(request, first_error(form))
    return redirect("proposal", harness, pk)


@require_http_methods(["GET", "HEAD", "POST"])
def edit(request: Request, harness: str, pk: int) -> HttpResponse:
    """Edit one file of a proposal by hand; a refused edit keeps what was typed."""
    proposal = _get(request, harness, pk)
    if proposal.state not in UNDER_REVIEW:
        messages.error(request, _("This proposal is no longer under review, so its files can't be edited."))
        return redirect("proposal", harness, pk)
    if request.method == "POST":
        form = FileForm(request.POST)
        if not form.is_valid():
            messages.error(request, first_error(form))
        elif _save_file(request, proposal, form):
            return redirect("proposal", harness, pk)
        path, content = request.POST.get("path", ""), request.POST.get("content", "")
    else:
        path, content = request.GET.get("path", ""), None
    files = _read_files(request, proposal)
    if files is None:
        return redirect("proposal", harness, pk)
    if content is None:
        content = files.get(path, b"").decode("utf-8", "replace")
    context = {"proposal": proposal, "path": path, "content": content, "paths": sorted(files)}
    return render_page(request, "proposal_edit.html", context, proposal.harness)


def _read_files(request: Request, proposal: Proposal) -> dict[str, bytes] | None:
    """The files that the proposal stands at; None, and a message, when git has them no longer."""
    with told(request):
        return open_repository(proposal.harness).files(proposal.head_commit or proposal.base_commit)
    return None


def _save_file(request: Request, proposal: Proposal, form: FileForm) -> bool:
    fields = form.cleaned_data
    with told(request, _("Saved as a new commit on the proposal's branch.")):
        proposal_actions.edit_file(
            actor_of(request), proposal, fields["path"], fields["content"], fields["expected_head"]
        )
        return True
    return False


@require_POST
def reject(request: Request, harness: str, pk: int) -> HttpResponse:
    """Reject a proposal for good, with a reason."""
    proposal = _get(request, harness, pk)
    with told(request, _("The proposal is rejected.")):
        proposal_actions.reject_proposal(actor_of(request), proposal, read_reason(request.POST))
    return redirect("proposal", harness, pk)
