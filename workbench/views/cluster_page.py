"""One cluster: how it grows, what it is made of, what is near to it, its diagnoses and its members."""

from typing import Any

from django.http import HttpResponse
from django.utils import timezone
from django.utils.translation import gettext_noop
from django.views.decorators.http import require_safe

from evolution.adapters.chat import Role as ModelRole
from evolution.adapters.model_choice import list_models
from evolution.models import Cluster, Harness
from evolution.queries import cluster_figures, cluster_likeness
from evolution.queries import clusters as cluster_queries
from evolution.queries.case_filters import CaseFilter
from evolution.queries.diagnoses import list_answers, list_standing
from evolution.queries.events import list_events_about
from evolution.queries.releases import list_release_days
from evolution.states import CaseState, DiagnosisState, JobKind
from workbench.access import Request, get_for, told
from workbench.answer_view import view_answers
from workbench.charts import timeline_figure
from workbench.fault_names import list_outside_parts, list_parts
from workbench.forms import MembersForm
from workbench.next_steps import find_next_step
from workbench.rendering import refresh_when_done, render_page
from workbench.views.cases import count_matching
from workbench.views.clusters import around_bulk
from workbench.views.events import link_events

NEAR_CLUSTERS = 5
MEMBER_ORDERS = {
    "strongest": gettext_noop("strongest first"),
    "weakest": gettext_noop("weakest first"),
    "newest": gettext_noop("newest first"),
}


@require_safe
def cluster_page(request: Request, harness: str, number: int) -> HttpResponse:
    """Show a cluster, with a diagnosis in progress."""
    cluster = get_for(
        request, harness, Cluster.objects.select_related("harness", "merged_into"), number=number
    )
    record = cluster.harness
    job = cluster_queries.latest_job(record, JobKind.DIAGNOSE, cluster.pk)
    running = cluster_queries.is_running(job)
    if answer := refresh_when_done(request, running=running):
        return answer
    size = cluster_figures.measure_size(cluster)
    context = {
        "cluster": cluster,
        "size": size,
        "open_failures": cluster_queries.count_open(record),
        "job": job,
        "is_running": running,
        **_diagnoses(cluster, record),
        **_figures(cluster, size),
        **_members(request, cluster, size),
        "near_clusters": cluster_likeness.list_near_clusters(cluster, NEAR_CLUSTERS),
        "near_misses": cluster_likeness.list_near_misses(cluster),
        "absorbed": list(cluster.absorbed.only("number", "name", "merged_into").order_by("number")),
        "events": link_events(record, list_events_about("cluster", cluster.pk)),
        **around_bulk(request, record),
    }
    return render_page(request, "cluster.html", context, record)


def _diagnoses(cluster: Cluster, harness: Harness) -> dict[str, Any]:
    answers = list_answers(cluster)
    views = view_answers(answers)
    # The newest that something came of, with what failed since.
    newest = next((place for place, view in enumerate(views) if view.hypotheses), 0)
    return {
        "answers": views,
        "newest_answers": views[: newest + 1],
        "earlier_answers": views[newest + 1 :],
        "earlier_open": sum(
            each.diagnosis.state == DiagnosisState.OPEN
            for view in views[newest + 1 :]
            for each in view.hypotheses
        ),
        "next": find_next_step(cluster, harness.name, list_standing(answers)),
        "diagnosers": list_models(ModelRole.DIAGNOSER),
        "editors": list_models(ModelRole.EDITOR),
        "parts": list_parts(),
        "outside_parts": list_outside_parts(),
        "datasets": harness.datasets.order_by("name"),
    }


def _figures(cluster: Cluster, size: cluster_figures.Size) -> dict[str, Any]:
    days = cluster_figures.count_days(cluster)
    releases = [(timezone.localdate(at), tag) for at, tag in list_release_days(cluster.harness)]
    return {
        "figure": timeline_figure(days, releases) if days else None,
        "days": sorted(days.items(), reverse=True),
        "spread": cluster_figures.measure_spreads([cluster], {cluster.pk: size})[cluster.pk],
    }


def _members(request: Request, cluster: Cluster, size: cluster_figures.Size) -> dict[str, Any]:
    """A page of the members, and what the buttons over them are about."""
    form = MembersForm(request.GET)
    form.full_clean()
    given = form.cleaned_data
    order, state = given.get("order") or "strongest", given.get("members") or ""
    wanted = CaseFilter(state=state, cluster=str(cluster.number))
    context: dict[str, Any] = {
        "page": cluster_queries.list_members(cluster, order, state, given.get("page") or 1),
        "order": order,
        "orders": MEMBER_ORDERS.items(),
        "members": state,
        "member_states": CaseState.choices,
        "wanted": wanted,
        "bulk_query": f"state={state}&cluster={cluster.number}",
    }
    if request.GET.get("all") and size.all_cases:
        with told(request):
            context |= count_matching(cluster.harness, wanted)
    return context
