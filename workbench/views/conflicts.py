"""Conflicts between the proposals of a step, or of one proposal with what is live: settled here, file by file."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from evolution.actions import conflicts as conflict_actions
from evolution.errors import LoopError
from evolution.loop.conflict_resolutions import Decision, HunkChoice, Side
from evolution.loop.step_merges import StepConflict
from evolution.models import Harness, Proposal
from evolution.queries import proposals as proposal_queries
from evolution.queries import steps as step_queries
from evolution.queries.steps import MergeForecast
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.conflict_view import SIDES, ConflictView, view_conflict
from workbench.forms import read_reason
from workbench.parameters import read_number
from workbench.rendering import render_page
from workbench.settled_view import view_settled


@dataclass(frozen=True)
class ConflictsPage:
    """Whose conflicts a page is about, where it is, and where people came from."""

    harness: Harness
    proposals: Sequence[Proposal]
    address: str
    back: str
    # one proposal and what is live
    is_alone: bool = False


@require_http_methods(["GET", "HEAD", "POST"])
def step_conflicts(request: Request, harness: str) -> HttpResponse:
    """What clashes among the proposals that were ticked for a step, or are in one."""
    record = get_harness_for(request, harness)
    ids = read_ticked(request.GET)
    proposals = proposal_queries.list_mergeable(record, ids)
    if not proposals:
        messages.error(request, _("Choose at least one approved proposal."))
        return redirect("steps", record.name)
    query = ticked_query(proposals)
    step = next((proposal.step for proposal in proposals if proposal.step), None)
    back = (
        reverse("step", args=[harness, step.number])
        if step
        else f"{reverse('steps', args=[harness])}?{query}"
    )
    address = f"{reverse('steps_conflicts', args=[harness])}?{query}"
    return _answer(request, ConflictsPage(record, proposals, address, back))


@require_http_methods(["GET", "HEAD", "POST"])
def proposal_conflicts(request: Request, harness: str, pk: int) -> HttpResponse:
    """What clashes between one proposal and what is live."""
    proposals = Proposal.objects.select_related("harness", "step").exclude(head_commit="")
    proposal = get_for(request, harness, proposals, pk=pk)
    address = reverse("proposal_conflicts", args=[harness, pk])
    back = reverse("proposal", args=[harness, pk])
    return _answer(request, ConflictsPage(proposal.harness, [proposal], address, back, is_alone=True))


@require_POST
def rebase(request: Request, harness: str, pk: int) -> HttpResponse:
    """Put a proposal on what is live now."""
    proposal = get_for(request, harness, Proposal.objects.select_related("harness", "step"), pk=pk)
    with told(request):
        rebased = conflict_actions.rebase_proposal(actor_of(request), proposal)
        if rebased.is_kept:
            messages.success(request, _("It builds on the live version now; its changes are the same."))
        else:
            messages.warning(
                request,
                _("It builds on the live version now. Its changes are others there: review it again."),
            )
    return redirect("proposal", harness, pk)


def read_ticked(sent: QueryDict) -> list[int]:
    """The ids of the proposals that were ticked."""
    return [pk for value in sent.getlist("proposals") if (pk := read_number(value)) is not None]


def ticked_query(proposals: Sequence[Proposal]) -> str:
    """The same as a query."""
    return urlencode({"chosen": 1, "proposals": [proposal.pk for proposal in proposals]}, doseq=True)


def _answer(request: Request, page: ConflictsPage) -> HttpResponse:
    if request.method == "POST" and _act(request, page):
        return redirect(_next_place(request, page))
    forecast = step_queries.foresee_merge(page.harness, page.proposals)
    context = {
        "page": page,
        "is_checked": forecast.is_known,
        "conflict": forecast.conflict,
        **_view_files(request, page, forecast),
        "feedback": request.POST.get("feedback", ""),
        "sides": SIDES,
    }
    return render_page(request, "conflicts.html", context, page.harness)


def _view_files(
    request: Request, page: ConflictsPage, forecast: MergeForecast
) -> dict[str, list[ConflictView]]:
    """The files in conflict, those that were settled before, and in one of them what could not be taken."""
    conflict = forecast.conflict
    typed = {key: str(value) for key, value in request.POST.items()}
    sent = {typed.get("key", ""): typed}
    pairs = (
        step_queries.list_waiting(page.harness, forecast),
        step_queries.list_settled(page.harness, forecast),
    )
    reader = actor_of(request).name
    shown = view_settled([*pairs[0], *pairs[1]], page.proposals, reader)
    waiting = {view.file.key: view for view in shown[: len(pairs[0])]}
    return {
        "files": [
            view_conflict(
                file,
                _name_sides(conflict, page),
                waiting.get(file.key),
                typed=sent.get(file.key),
                recalled=None if file.key in waiting else step_queries.recall_conflict(page.harness, file),
            )
            for file in (conflict.files if conflict else ())
        ],
        "settled": [
            view_conflict(view.file, _name_sides(None, page), view, sent.get(view.file.key))
            for view in shown[len(pairs[0]) :]
        ],
    }


def _name_sides(conflict: StepConflict | None, page: ConflictsPage) -> tuple[str, str]:
    """What people call the sides; of what was settled, it is not known between which of several proposals."""
    live = page.is_alone or (conflict is not None and not conflict.before)
    proposal = conflict.proposal if conflict else page.proposals[0] if page.is_alone else None
    return _("the live version") if live else _("so far"), f"#{proposal.pk}" if proposal else _(
        "the later one"
    )


def _act(request: Request, page: ConflictsPage) -> bool:
    """Do what was asked for; False, and a message, when it can't be done."""
    asked = {"settle": _settle, "confirm": _confirm, "forget": _forget, "send_back": _send_back}.get(
        request.POST.get("decision", "")
    )
    if asked is None:
        messages.error(request, _("Say what to do."))
        return False
    with told(request):
        asked(request, page)
        return True
    return False


def _next_place(request: Request, page: ConflictsPage) -> str:
    """This page as long as something is open; then where people came from."""
    decision = request.POST.get("decision")
    if decision == "send_back":
        return page.back
    forecast = step_queries.foresee_merge(page.harness, page.proposals)
    if decision in {"settle", "confirm"} and forecast.is_known and forecast.conflict is None:
        messages.success(request, _("Everything is settled: they fit together."))
        return page.back
    if decision == "settle" and forecast.conflict:
        messages.success(request, _("Settled. Below is what is open still."))
    return page.address


def _settle(request: Request, page: ConflictsPage) -> None:
    key = request.POST.get("key", "")
    conflict_actions.settle_conflict(actor_of(request), page.proposals, key, _read_decision(request.POST))


def _confirm(request: Request, page: ConflictsPage) -> None:
    key, reviewed = request.POST.get("key", ""), request.POST.get("reviewed", "")
    conflict_actions.confirm_conflict(actor_of(request), page.proposals, key, reviewed)


def _forget(request: Request, page: ConflictsPage) -> None:
    pk = read_number(request.POST.get("resolution", "")) or 0
    conflict_actions.forget_conflict(actor_of(request), page.harness, pk)


def _send_back(request: Request, page: ConflictsPage) -> None:
    pk = read_number(request.POST.get("proposal", ""))
    proposal = next((each for each in page.proposals if each.pk == pk), None)
    if proposal is None:
        raise LoopError(_("Choose which proposal to send back."))
    feedback = request.POST.get("feedback", "")
    conflict_actions.send_back(actor_of(request), proposal, feedback)
    messages.success(request, _("#%(number)d is with the editor.") % {"number": proposal.pk})


def _read_decision(sent: QueryDict) -> Decision:
    reason = read_reason(sent)
    match sent.get("way", ""):
        case "whole":
            return Decision(text=sent.get("text", ""), reason=reason)
        case "ours":
            return Decision(side=Side.OURS, reason=reason)
        case "theirs":
            return Decision(side=Side.THEIRS, reason=reason)
        case _:
            return Decision(hunks=tuple(_read_choices(sent)), reason=reason)


def _read_choices(sent: QueryDict) -> list[HunkChoice]:
    """In order, up to the first place for which nothing is chosen."""
    choices: list[HunkChoice] = []
    while (side := sent.get(f"choice-{len(choices) + 1}", "")) in SIDES:
        choices.append(HunkChoice(Side(side), sent.get(f"own-{len(choices) + 1}", "")))
    return choices
