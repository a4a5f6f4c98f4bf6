"""What people do with a diagnosis; it is shown on its cluster's page."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from evolution.actions import diagnosis as diagnosis_actions
from evolution.actions import proposals as proposal_actions
from evolution.models import Diagnosis
from workbench.access import Request, actor_of, get_for, told
from workbench.forms import DiagnosisForm, first_error, read_reason


def _get(request: Request, harness: str, pk: int) -> Diagnosis:
    return get_for(request, harness, Diagnosis.objects.select_related("cluster"), pk=pk)


@require_POST
def amend(request: Request, harness: str, pk: int) -> HttpResponse:
    """Put a person's wording in the place of the model's."""
    diagnosis = _get(request, harness, pk)
    form = DiagnosisForm(request.POST)
    if form.is_valid():
        with told(request, _("The diagnosis is amended.")):
            diagnosis_actions.amend_diagnosis(
                actor_of(request),
                diagnosis,
                hypothesis=form.cleaned_data["hypothesis"],
                changes=form.change_lines(),
            )
    else:
        messages.error(request, first_error(form))
    return redirect("cluster", harness, diagnosis.cluster.number)


@require_POST
def draft(request: Request, harness: str, pk: int) -> HttpResponse:
    """Accept a diagnosis and have the editor draft the change."""
    diagnosis = _get(request, harness, pk)
    with told(request):
        proposal = proposal_actions.start_draft(actor_of(request), diagnosis)
        return redirect("proposal", harness, proposal.pk)
    return redirect("cluster", harness, diagnosis.cluster.number)


@require_POST
def reject(request: Request, harness: str, pk: int) -> HttpResponse:
    """Say that a diagnosis is wrong, with a reason."""
    diagnosis = _get(request, harness, pk)
    with told(request, _("The diagnosis is rejected.")):
        diagnosis_actions.reject_diagnosis(actor_of(request), diagnosis, read_reason(request.POST))
    return redirect("cluster", harness, diagnosis.cluster.number)
