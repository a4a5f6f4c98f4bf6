"""One result of an evaluation: its page within the list that it was opened from, and its trajectory for others."""

from dataclasses import asdict
from urllib.parse import urlencode

from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_safe

from evolution.loop.evaluation import describe_faults
from evolution.models import CaseResult, Evaluation
from evolution.queries import results as result_queries
from evolution.queries import trajectories as trajectory_queries
from evolution.queries.stability import Trial, list_trials
from workbench.access import Request, get_for, told
from workbench.forms import ResultFilterForm
from workbench.rendering import render_page
from workbench.whole_values import answer_value

# Formats of a trajectory's download, with the names that they go by.
EXPORTS = (("openai", "OpenAI"), ("atif", "ATIF"), ("json", "JSON"))


def write_query(wanted: result_queries.ResultFilter) -> str:
    """The filter as the end of an address, "" for one that narrows nothing."""
    narrowing = {name: value for name, value in asdict(wanted).items() if value}
    return f"?{urlencode(narrowing)}" if narrowing else ""


def _get(request: Request, harness: str, pk: int, result: int) -> CaseResult:
    evaluation = get_for(request, harness, Evaluation, pk=pk)
    records = CaseResult.objects.select_related("case", "evaluation__harness")
    return get_object_or_404(records, evaluation=evaluation, pk=result)


@require_safe
def result_page(request: Request, harness: str, pk: int, result: int) -> HttpResponse:
    """Show one result: request, trajectory, reply and the judge's reasons."""
    record = _get(request, harness, pk, result)
    wanted = ResultFilterForm(request.GET).wanted()
    context = {
        "evaluation": record.evaluation,
        "result": record,
        "exports": EXPORTS,
        "faults": describe_faults(record.evaluation.faults),
        "case_faults": describe_faults(record.case.faults),
        "place": result_queries.find_place(record, wanted),
        "filter_query": write_query(wanted),
        "trials": _list_trials(record),
    }
    return render_page(request, "result.html", context, record.evaluation.harness)


def _list_trials(record: CaseResult) -> list[Trial]:
    """The repeats of the case; none where there is but one."""
    return list_trials(record.evaluation, record.case_id) if record.evaluation.repeats > 1 else []


@require_safe
def result_value(request: Request, harness: str, pk: int, result: int) -> HttpResponse:
    """The whole of what pages show the beginning of; ?path= is a JSON pointer into the result."""
    record = _get(request, harness, pk, result)
    parts = {"trajectory": record.trajectory, "judge_trajectory": record.judge_trajectory}
    return answer_value(request, {**parts, "request": record.case.request, "context": record.case.context})


@require_safe
def result_trajectory(request: Request, harness: str, pk: int, result: int, format_name: str) -> HttpResponse:
    """Download the trajectory of a result for another program."""
    record = _get(request, harness, pk, result)
    if format_name not in trajectory_queries.FORMATS:
        raise Http404
    with told(request):
        exported = trajectory_queries.export_trajectory(record, format_name)
        name = f"result-{record.pk}.{format_name}.json"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        parameters = {"ensure_ascii": False, "indent": 2}
        return JsonResponse(exported, headers=headers, json_dumps_params=parameters)
    return redirect("result", harness, pk, result)
