"""What people do with a diagnosis, which is shown on its cluster's page; and two answers side by side."""

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import diagnosis as diagnosis_actions
from evolution.actions import handling
from evolution.actions import proposals as proposal_actions
from evolution.actors import Role
from evolution.adapters.chat import Role as ModelRole
from evolution.adapters.model_choice import check_model
from evolution.models import Cluster, Diagnosis
from evolution.queries.diagnoses import list_answers, list_shown_cases
from evolution.states import Handling, Split
from workbench.access import Request, actor_of, get_for, told
from workbench.answer_view import compare_answers
from workbench.diagnosis_forms import (
    CompareForm,
    DiagnosisForm,
    HandleForm,
    ModelForm,
    read_case_ids,
    read_corrections,
    view_labels,
)
from workbench.forms import first_error, read_form, read_reason
from workbench.handled_words import tell_handled
from workbench.rendering import render_page
from workbench.side_by_side import choose_two


def _get(request: Request, harness: str, pk: int) -> Diagnosis:
    related = Diagnosis.objects.select_related("cluster__harness", "harness", "exchange")
    return get_for(request, harness, related.defer("exchange__request", "exchange__replies"), pk=pk)


def _back(harness: str, diagnosis: Diagnosis) -> HttpResponse:
    return redirect("cluster", harness, diagnosis.cluster.number)


@require_POST
def amend(request: Request, harness: str, pk: int) -> HttpResponse:
    """Put a person's wording in the place of the model's, or blame another part."""
    diagnosis = _get(request, harness, pk)
    form = DiagnosisForm(request.POST)
    if form.is_valid():
        with told(request, _("The diagnosis is amended.")):
            diagnosis_actions.amend_diagnosis(
                actor_of(request),
                diagnosis,
                hypothesis=form.cleaned_data["hypothesis"],
                changes=form.change_lines() if "changes" in request.POST else None,
                part=form.cleaned_data["part"] or None,
                path=form.cleaned_data["path"] if "path" in request.POST else None,
            )
    else:
        messages.error(request, first_error(form))
    return _back(harness, diagnosis)


@require_POST
def draft(request: Request, harness: str, pk: int) -> HttpResponse:
    """Accept a diagnosis and have the editor draft the change, or another model an alternative."""
    diagnosis = _get(request, harness, pk)
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
        model = read_form(ModelForm(request.POST))["model"]
        check_model(ModelRole.EDITOR, model)
        proposal = proposal_actions.start_draft(actor_of(request), diagnosis, model)
        return redirect("proposal", harness, proposal.pk)
    return _back(harness, diagnosis)


@require_POST
def reject(request: Request, harness: str, pk: int) -> HttpResponse:
    """Say that a diagnosis is wrong, with a reason."""
    diagnosis = _get(request, harness, pk)
    with told(request, _("The diagnosis is rejected.")):
        diagnosis_actions.reject_diagnosis(actor_of(request), diagnosis, read_reason(request.POST))
    return _back(harness, diagnosis)


@require_POST
def handle(request: Request, harness: str, pk: int) -> HttpResponse:
    """Deal with failures that are not the harness's fault; corrected labels come from the page of `relabel`."""
    diagnosis = _get(request, harness, pk)
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
        fields = read_form(HandleForm(request.POST))
        way, labels = Handling(fields["handling"]), []
        if way == Handling.RELABELLED:
            labels = read_corrections(request.POST, list_shown_cases(diagnosis, with_places=True))
        handling.handle_diagnosis(
            actor_of(request),
            diagnosis,
            way,
            fields["reason"],
            case_ids=[] if labels else read_case_ids(request.POST),
            corrections=labels,
            dataset=fields["dataset"],
        )
        messages.success(request, tell_handled(diagnosis))
    return _back(harness, diagnosis)


@require_POST
def reopen(request: Request, harness: str, pk: int) -> HttpResponse:
    """Take back what was decided about a diagnosis, and what was done about its cases."""
    diagnosis = _get(request, harness, pk)
    with told(request, _("The diagnosis is open again.")):
        handling.reopen_diagnosis(actor_of(request), diagnosis, read_reason(request.POST))
    return _back(harness, diagnosis)


@require_safe
def relabel(request: Request, harness: str, pk: int) -> HttpResponse:
    """Ask what is to be expected of the cases instead."""
    diagnosis = _get(request, harness, pk)
    shown = list_shown_cases(diagnosis, with_places=True)
    context: dict[str, Any] = {
        "diagnosis": diagnosis,
        "labels": view_labels(shown),
        "unlabelled": sum(each.place is None for each in shown),
        "splits": Split.choices,
    }
    return render_page(request, "diagnosis_relabel.html", context, diagnosis.harness)


@require_safe
def compare(request: Request, harness: str, number: int) -> HttpResponse:
    """Two answers about a cluster side by side; the newest two without a choice."""
    cluster = get_for(request, harness, Cluster.objects.select_related("harness"), number=number)
    answers = [answer for answer in list_answers(cluster) if answer.exchange is not None]
    # Those that nothing came of are compared only when asked for.
    answers.sort(key=lambda answer: not answer.diagnoses)
    by_id = {answer.exchange.pk: answer for answer in answers if answer.exchange}
    form = CompareForm(request.GET)
    form.full_clean()
    given = form.cleaned_data
    chosen = choose_two(list(by_id), given.get("first"), given.get("second"))
    context: dict[str, Any] = {"cluster": cluster, "answers": answers}
    if chosen:
        first, second = by_id[chosen[0]], by_id[chosen[1]]
        context |= {"first": first, "second": second, "compared": compare_answers(first, second)}
    return render_page(request, "diagnoses_compare.html", context, cluster.harness)
