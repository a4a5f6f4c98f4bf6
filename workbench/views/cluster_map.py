"""The map of the failures: a point each, near to what it is like, in the colour of its cluster."""

from typing import Any

from django.http import Http404, HttpResponse, JsonResponse
from django.views.decorators.gzip import gzip_page
from django.views.decorators.http import require_safe

from evolution.models import ClusterRun
from evolution.queries.case_filters import CaseFilter
from evolution.queries.cluster_map import count_off_map, draw_map
from evolution.queries.cluster_runs import list_runs
from evolution.queries.clusters import count_open, count_unclustered
from workbench.access import Request, get_harness_for
from workbench.rendering import render_page
from workbench.text_marks import spell
from workbench.views.clusters import around_bulk


@require_safe
def map_page(request: Request, harness: str) -> HttpResponse:
    """Show the map of a clustering, the newest without `run`; its points come on their own."""
    record = get_harness_for(request, harness)
    runs = list(list_runs(record)[:50])
    run = _find(request, runs)
    context: dict[str, Any] = {
        "run": run,
        "runs": runs,
        "is_newest": bool(runs) and run == runs[0],
        "off_map": count_off_map(ClusterRun.objects.get(pk=run.pk)) if run else 0,
        "open_failures": count_open(record),
        "unclustered": count_unclustered(record),
        "wanted": CaseFilter(),
        "bulk_query": "state=open",
        "only_rows": True,
        **around_bulk(request, record),
    }
    return render_page(request, "cluster_map.html", context, record)


# No secret of the session is in it, so packing it gives nothing away.
@require_safe
@gzip_page
def map_points(request: Request, harness: str) -> HttpResponse:
    """The points of a map as JSON; those of an older clustering in the clusters of that time."""
    record = get_harness_for(request, harness)
    runs = list(list_runs(record)[:50])
    run = _find(request, runs)
    if run is None:
        raise Http404
    whole = ClusterRun.objects.get(pk=run.pk)
    drawn = draw_map(whole, as_it_was=run != runs[0])
    clusters = [{**vars(cluster), "name": spell(cluster.name)} for cluster in drawn.clusters]
    return JsonResponse({**vars(drawn), "titles": list(map(spell, drawn.titles)), "clusters": clusters})


def _find(request: Request, runs: list[ClusterRun]) -> ClusterRun | None:
    wanted = request.GET.get("run", "")
    if not wanted:
        return runs[0] if runs else None
    found = [run for run in runs if str(run.pk) == wanted]
    if not found:
        raise Http404
    return found[0]
