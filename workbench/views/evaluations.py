"""Evaluations: the list with a form to start one, one evaluation in progress or done, and one result."""

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import cases as case_actions
from evolution.actions import evaluations as evaluation_actions
from evolution.loop.evaluation import describe_faults
from evolution.loop.repositories import open_repository
from evolution.loop.runners import detail_runner
from evolution.models import CaseResult, Evaluation, Harness
from evolution.queries import evaluations as evaluation_queries
from evolution.queries import trajectories as trajectory_queries
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.faults import KINDS
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import EvaluationForm
from workbench.parameters import read_number
from workbench.rendering import refresh_when_done, render_page

# Formats of a trajectory's download, with the names that they go by.
EXPORTS = (("openai", "OpenAI"), ("atif", "ATIF"), ("json", "JSON"))


@require_safe
def evaluation_list(request: Request, harness: str) -> HttpResponse:
    """List evaluations, newest first."""
    record = get_harness_for(request, harness)
    return _render_list(request, record, EvaluationForm(record))


def _render_list(request: Request, record: Harness, form: EvaluationForm) -> HttpResponse:
    context = {
        "evaluations": evaluation_queries.list_evaluations(record)[:200],
        "versions": evaluation_queries.list_dataset_versions(record),
        "form": form,
        "fault_kinds": KINDS,
    }
    return render_page(request, "evaluations.html", context, record)


@require_POST
def start(request: Request, harness: str) -> HttpResponse:
    """Evaluate a version of the harness; a refused form keeps what was entered."""
    record = get_harness_for(request, harness)
    form = EvaluationForm(record, request.POST)
    if form.is_valid() and (commit := _resolve(record, form)):
        fields = form.cleaned_data
        with told(request):
            evaluation = evaluation_actions.start_evaluation(
                actor_of(request),
                record,
                commit,
                fields["dataset_version"],
                splits=tuple(fields["splits"]),
                repeats=fields["repeats"],
                faults=fields["faults"],
            )
            return redirect("evaluation", record.name, evaluation.pk)
    return _render_list(request, record, form)


def _resolve(record: Harness, form: EvaluationForm) -> str:
    """The commit of the version that was asked for; else empty, with the error at the field."""
    try:
        return open_repository(record).resolve(form.cleaned_data["ref"])
    except HarnessRepoError as failure:
        form.add_error("ref", str(failure))
        return ""


def _get(request: Request, harness: str, pk: int) -> Evaluation:
    return get_for(
        request, harness, Evaluation.objects.select_related("harness", "dataset_version__dataset"), pk=pk
    )


@require_safe
def evaluation_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show how far an evaluation is and what it scored."""
    evaluation = _get(request, harness, pk)
    progress = evaluation_queries.measure_progress(evaluation)
    if response := refresh_when_done(request, running=progress.is_running):
        return response
    context = {
        "evaluation": evaluation,
        "runner_detail": detail_runner(evaluation.runner) if evaluation.runner else "",
        "faults": describe_faults(evaluation.faults),
        "progress": progress,
        "is_running": progress.is_running,
        "overall": evaluation_queries.score_overall(evaluation),
        "guard": evaluation_queries.score_guard(evaluation),
        "categories": evaluation_queries.score_categories(evaluation),
        "cost": evaluation_queries.measure_cost(evaluation),
        "failing": evaluation_queries.list_failing(evaluation),
        "errors": evaluation_queries.list_failing(evaluation, errors=True),
        "taken": evaluation_queries.count_taken(evaluation),
    }
    return render_page(request, "evaluation.html", context, evaluation.harness)


def _get_result(request: Request, harness: str, pk: int, result: int) -> CaseResult:
    records = CaseResult.objects.select_related("case", "evaluation__harness")
    return get_object_or_404(records, evaluation=_get(request, harness, pk), pk=result)


@require_safe
def result_page(request: Request, harness: str, pk: int, result: int) -> HttpResponse:
    """Show one result: request, trajectory, reply and the judge's reasons."""
    record = _get_result(request, harness, pk, result)
    context = {
        "evaluation": record.evaluation,
        "result": record,
        "exports": EXPORTS,
        "faults": describe_faults(record.evaluation.faults),
        "case_faults": describe_faults(record.case.faults),
    }
    return render_page(request, "result.html", context, record.evaluation.harness)


@require_safe
def result_trajectory(request: Request, harness: str, pk: int, result: int, format_name: str) -> HttpResponse:
    """Download the trajectory of a result for another program."""
    record = _get_result(request, harness, pk, result)
    if format_name not in trajectory_queries.FORMATS:
        raise Http404
    with told(request):
        exported = trajectory_queries.export_trajectory(record, format_name)
        name = f"result-{record.pk}.{format_name}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        parameters = {"ensure_ascii": False, "indent": 2}
        return JsonResponse(exported, headers=headers, json_dumps_params=parameters)
    return redirect("result", harness, pk, result)


@require_POST
def cancel(request: Request, harness: str, pk: int) -> HttpResponse:
    """Stop an evaluation; what is measured stays."""
    evaluation = _get(request, harness, pk)
    with told(request, _("The evaluation is cancelled; it can be resumed.")):
        evaluation_actions.cancel_evaluation(actor_of(request), evaluation)
    step = read_number(request.POST.get("step", ""))
    return redirect("evaluation", harness, pk) if step is None else redirect("step", harness, step)


@require_POST
def resume(request: Request, harness: str, pk: int) -> HttpResponse:
    """Go on with an evaluation: only what is missing is made."""
    evaluation = _get(request, harness, pk)
    with told(request):
        evaluation_actions.resume_evaluation(actor_of(request), evaluation)
    return redirect("evaluation", harness, pk)


@require_POST
def take_failures(request: Request, harness: str, pk: int) -> HttpResponse:
    """Take the failures of an evaluation into the inbox."""
    evaluation = _get(request, harness, pk)
    with told(request):
        taken = case_actions.take_failures(actor_of(request), evaluation)
        text = ngettext(
            "%(n)d new failure taken into the inbox.", "%(n)d new failures taken into the inbox.", taken
        )
        messages.success(request, text % {"n": taken})
    return redirect("evaluation", harness, pk)
