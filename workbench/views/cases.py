"""The inbox of failure cases: list, import, one case, ignore and reopen."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import cases as case_actions
from evolution.models import FailureCase
from evolution.queries import cases as case_queries
from evolution.states import CaseState
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import CaseFilterForm, ImportForm, first_error, read_reason
from workbench.rendering import render_page


@require_safe
def case_list(request: Request, harness: str) -> HttpResponse:
    """List the failures that pass the filters."""
    record = get_harness_for(request, harness)
    wanted = CaseFilterForm(request.GET).wanted()
    context = {
        "page": case_queries.list_cases(record, wanted, request.GET.get("page", 1)),
        "facets": case_queries.case_facets(record, wanted.state),
        "wanted": wanted,
        "states": CaseState.choices,
        "unclustered": case_queries.UNCLUSTERED,
        "report": request.session.pop("import_report", None),
    }
    return render_page(request, "cases.html", context, record)


@require_POST
def import_cases(request: Request, harness: str) -> HttpResponse:
    """Import an uploaded file; the report is shown on the inbox."""
    record = get_harness_for(request, harness)
    form = ImportForm(request.POST, request.FILES)
    if not form.is_valid():
        messages.error(request, first_error(form))
        return redirect("cases", record.name)
    upload, only_failures = form.cleaned_data["file"], not form.cleaned_data["everything"]
    with told(request):
        report = case_actions.import_failures(
            actor_of(request), record, [upload], only_failures=only_failures
        )
        counts = ("read", "new", "duplicate", "updated", "passed", "rejected")
        request.session["import_report"] = {
            "file": upload.name,
            "counts": {name: getattr(report, name) for name in counts},
            "problems": [str(problem) for problem in report.problems[:50]],
        }
    return redirect("cases", record.name)


@require_safe
def case_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show one failure with everything known about it."""
    case = get_for(request, harness, FailureCase.objects.select_related("cluster", "evaluation"), pk=pk)
    newer, older = case_queries.neighbours(case)
    context = {"case": case, "newer": newer, "older": older, "sightings": case.sightings.order_by("id")[:100]}
    return render_page(request, "case.html", context, get_harness_for(request, harness))


@require_POST
def ignore(request: Request, harness: str, pk: int) -> HttpResponse:
    """Take a failure out of the inbox, with a reason."""
    case = get_for(request, harness, FailureCase, pk=pk)
    with told(request, _("The case is ignored.")):
        case_actions.ignore_case(actor_of(request), case, read_reason(request.POST))
    return redirect("case", harness, pk)


@require_POST
def reopen(request: Request, harness: str, pk: int) -> HttpResponse:
    """Put a failure back into the inbox."""
    case = get_for(request, harness, FailureCase, pk=pk)
    with told(request, _("The case is open again.")):
        case_actions.reopen_case(actor_of(request), case)
    return redirect("case", harness, pk)
