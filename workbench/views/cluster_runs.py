"""Clusterings: those that are kept, and what became of failures and clusters between two of them."""

from typing import Any

from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from evolution.models import Cluster, ClusterRun, Harness
from evolution.queries.cluster_runs import compare_runs, list_flow, list_runs
from evolution.queries.clusters import count_unclustered
from workbench.access import Request, get_harness_for
from workbench.forms import CompareRunsForm
from workbench.rendering import render_page

# Clusters of a comparison on one page.
PAGE_SIZE = 100


@require_safe
def run_list(request: Request, harness: str) -> HttpResponse:
    """List the clusterings that are kept, with what was chosen and how long it took."""
    record = get_harness_for(request, harness)
    return render_page(
        request,
        "cluster_runs.html",
        {"runs": list(list_runs(record)), "unclustered": count_unclustered(record)},
        record,
    )


@require_safe
def compare(request: Request, harness: str) -> HttpResponse:
    """Compare two clusterings, the newest two without a choice; `was` and `now` show who went from where to where."""
    record = get_harness_for(request, harness)
    runs = list(list_runs(record))
    form = CompareRunsForm(request.GET)
    form.full_clean()
    given = form.cleaned_data
    chosen = _choose(runs, given.get("before"), given.get("after"))
    context: dict[str, Any] = {"runs": runs, "loose": count_unclustered(record)}
    if chosen:
        before, after = (ClusterRun.objects.get(pk=run.pk) for run in chosen)
        comparison = compare_runs(before, after)
        page = Paginator(comparison.fates, PAGE_SIZE).get_page(request.GET.get("page", 1))
        context |= {"comparison": comparison, "page": page, "before": before, "after": after}
        if given.get("was") is not None and given.get("now") is not None:
            context |= _flow(record, before, after, given["was"], given["now"])
    return render_page(request, "cluster_compare.html", context, record)


def _choose(
    runs: list[ClusterRun], before: int | None, after: int | None
) -> tuple[ClusterRun, ClusterRun] | None:
    """The two clusterings in the order of time; None when there are no two."""
    by_id = {run.pk: run for run in runs}
    wanted = [pk for pk in (before, after) if pk is not None]
    if any(pk not in by_id for pk in wanted):
        raise Http404
    for run in runs:
        if len(set(wanted)) < 2 and run.pk not in wanted:
            wanted.append(run.pk)
    first, *rest = sorted(set(wanted)) or [0]
    return (by_id[first], by_id[rest[-1]]) if rest else None


def _flow(harness: Harness, before: ClusterRun, after: ClusterRun, was: int, now: int) -> dict[str, Any]:
    clusters = Cluster.objects.filter(harness=harness, pk__in=[was, now]).only("number", "name")
    found = {cluster.pk: cluster for cluster in clusters}
    cases, count = list_flow(before, after, was, now)
    places = [(place, found.get(place)) for place in (was, now)]
    return {"flow_cases": cases, "flow_count": count, "flow_places": places}
