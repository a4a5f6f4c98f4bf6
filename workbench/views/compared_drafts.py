"""Two drafts side by side, such as those that two models made of one diagnosis."""

from typing import Any

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from evolution.models import Harness, Proposal
from workbench.access import Request, get_harness_for
from workbench.diagnosis_forms import CompareForm
from workbench.draft_view import view_between, view_drafts
from workbench.rendering import render_page
from workbench.side_by_side import choose_two

# Proposals that can be chosen.
MOST_OPTIONS = 200


@require_safe
def compare(request: Request, harness: str) -> HttpResponse:
    """Compare two proposals, without a choice the newest two of a diagnosis; ?show=between: one against the other."""
    record = get_harness_for(request, harness)
    form = CompareForm(request.GET)
    form.full_clean()
    given = form.cleaned_data
    options = _list_options(record, given.get("first") or given.get("second"))
    by_id = {proposal.pk: proposal for proposal in options}
    chosen = choose_two(list(by_id), given.get("first"), given.get("second"))
    context: dict[str, Any] = {"options": options}
    if chosen:
        first, second = by_id[chosen[0]], by_id[chosen[1]]
        is_between = request.GET.get("show") == "between"
        between, problem = view_between(request, first, second) if is_between else (None, "")
        context |= {
            "drafts": view_drafts(request, [first, second]),
            "is_between": is_between,
            "between": between,
            "between_problem": problem,
            "is_one_diagnosis": first.diagnosis_id is not None and first.diagnosis_id == second.diagnosis_id,
        }
    return render_page(request, "proposals_compare.html", context, record)


def _list_options(harness: Harness, chosen: int | None) -> list[Proposal]:
    """The proposals, nearest first: of the same diagnosis, of the same cluster, the newest."""
    proposals = Proposal.objects.filter(harness=harness).select_related("harness", "diagnosis__cluster")
    found = list(
        proposals.defer("diagnosis__cluster__centroid", "diagnosis__output").order_by("-pk")[:MOST_OPTIONS]
    )
    if chosen is not None and all(proposal.pk != chosen for proposal in found):
        found += proposals.filter(pk=chosen)
    if chosen is None:
        diagnoses = [proposal.diagnosis_id for proposal in found]
        wanted = next((pk for pk in diagnoses if pk is not None and diagnoses.count(pk) > 1), None)
        return sorted(found, key=lambda proposal: proposal.diagnosis_id != wanted)
    near = next((proposal for proposal in found if proposal.pk == chosen), None)
    if near is None:
        raise Http404
    return sorted(found, key=lambda proposal: _distance(proposal, near))


def _distance(proposal: Proposal, near: Proposal) -> int:
    if proposal.diagnosis is None or near.diagnosis is None:
        return 2
    if proposal.diagnosis_id == near.diagnosis_id:
        return 0
    return 1 if proposal.diagnosis.cluster_id == near.diagnosis.cluster_id else 2
