"""The inbox of failure cases: its list; one case is on a page of its own."""

from dataclasses import replace
from typing import Any

from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_safe

from evolution.actors import Role
from evolution.models import FailureCase, Harness
from evolution.queries.case_facets import count_by_value
from evolution.queries.case_filters import CaseFilter
from evolution.queries.cases import count_cases, list_cases
from workbench.access import Request, actor_of, get_harness_for, told
from workbench.case_options import draw_options, read_surroundings
from workbench.case_rows import RowWriter
from workbench.forms import CaseFilterForm, CasePlaceForm
from workbench.inbox import list_narrowing, list_query
from workbench.last_bulk import read_last_bulk
from workbench.rendering import render_page, wanted_part


@require_safe
def case_list(request: Request, harness: str) -> HttpResponse:
    """List the failures that pass the filters; without any, the view that the person opens the inbox with."""
    record = get_harness_for(request, harness)
    actor = actor_of(request)
    part = wanted_part(request)
    around = read_surroundings(record, actor.name)
    opening = next((view for view in around.views if view.is_default), None)
    if opening and not request.GET and not part:
        return redirect(f"{request.path}?{opening.query or 'state=open'}")
    form = CaseFilterForm(request.GET)
    wanted = form.wanted()
    context: dict[str, Any] = {"wanted": wanted, "query": list_query(request.GET), "views": around.views}
    context["unread"] = form.list_unread()
    if request.GET.get("all"):
        with told(request):
            context |= count_matching(record, form.wanted_strictly())
    page = list_cases(record, wanted, **CasePlaceForm(request.GET).place())
    rows = RowWriter(
        record,
        context["query"],
        may_choose=actor.role >= Role.DEVELOPER,
        all_chosen="matching" in context,
    )
    context |= {"page": page, "rows": rows.write(page), "options": draw_options(around.options, wanted)}
    if not part:
        context |= {"narrowing": list_narrowing(wanted), "last_bulk": read_last_bulk(request, record)}
    return render_page(request, "cases.html", context, record)


def count_matching(harness: Harness, wanted: CaseFilter) -> dict[str, Any]:
    """The exact number of cases that pass a filter now, and the id up to which they are meant. Raises LoopError."""
    newest = FailureCase.objects.order_by("-id").values_list("pk", flat=True).first()
    upto = wanted.upto if wanted.upto is not None else newest or 0
    return {"matching": count_cases(harness, replace(wanted, upto=upto)), "upto": upto}


@require_safe
def case_counts(request: Request, harness: str) -> HttpResponse:
    """How the cases that pass the filters spread over their values; the list asks for it once it is shown."""
    record = get_harness_for(request, harness)
    wanted = CaseFilterForm(request.GET).wanted()
    counts = count_by_value(record, wanted)
    names = dict(record.clusters.filter(number__in=map(int, counts.clusters)).values_list("number", "name"))
    clusters = [(int(number), names.get(int(number), ""), n) for number, n in counts.clusters.items()]
    context = {"counts": counts, "wanted": wanted, "clusters": clusters, "query": list_query(request.GET)}
    return render_page(request, "case_counts.html", context, record)
