"""Evaluations: the list with a form to start one, and one evaluation in progress or done, with its results."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import cases as case_actions
from evolution.actions import evaluations as evaluation_actions
from evolution.loop.evaluation import describe_faults
from evolution.loop.repositories import open_repository
from evolution.loop.runners import detail_runner
from evolution.models import Evaluation, Harness
from evolution.queries import evaluations as evaluation_queries
from evolution.queries import results as result_queries
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.faults import KINDS
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import EvaluationForm, ResultFilterForm
from workbench.parameters import read_number
from workbench.rendering import refresh_when_done, render_page, wanted_part
from workbench.views.results import write_query


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
    """Show how far an evaluation is and what it scored, with its results."""
    evaluation = _get(request, harness, pk)
    progress = evaluation_queries.measure_progress(evaluation)
    if response := refresh_when_done(request, running=progress.is_running):
        return response
    context: dict[str, object] = {
        "evaluation": evaluation,
        "progress": progress,
        "is_running": progress.is_running,
    }
    part = wanted_part(request)
    if part != "results":
        context |= _figures(evaluation)
    # A poll of the progress leaves the list alone: it is read from every trajectory.
    if part != "progress":
        context |= _results(request, evaluation)
    if not part:
        context |= _head(evaluation)
    return render_page(request, "evaluation.html", context, evaluation.harness)


def _figures(evaluation: Evaluation) -> dict[str, object]:
    return {
        "overall": evaluation_queries.score_overall(evaluation),
        "guard": evaluation_queries.score_guard(evaluation),
        "categories": evaluation_queries.score_categories(evaluation),
        "cost": evaluation_queries.measure_cost(evaluation),
        "taken": evaluation_queries.count_taken(evaluation),
    }


def _results(request: Request, evaluation: Evaluation) -> dict[str, object]:
    wanted = ResultFilterForm(request.GET).wanted()
    return {
        "page": result_queries.list_results(evaluation, wanted, request.GET.get("page", 1)),
        "facets": result_queries.result_facets(evaluation),
        "wanted": wanted,
        "filter_query": write_query(wanted),
    }


def _head(evaluation: Evaluation) -> dict[str, object]:
    """Who was measured, under which faults, and what these did."""
    case_faults = result_queries.count_cases_with_faults(evaluation)
    return {
        "runner_detail": detail_runner(evaluation.runner) if evaluation.runner else "",
        "faults": describe_faults(evaluation.faults),
        "case_faults": case_faults,
        "struck": result_queries.count_struck(evaluation) if evaluation.faults or case_faults else None,
    }


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
