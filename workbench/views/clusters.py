"""Clusters: the table with clustering in progress, one cluster, and what people do with it."""

from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import clusters as cluster_actions
from evolution.actions import diagnosis as diagnosis_actions
from evolution.models import Cluster, Diagnosis
from evolution.queries import clusters as cluster_queries
from evolution.states import ClusterState, DiagnosisState, JobKind
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.forms import NameForm, read_form, read_reason
from workbench.next_steps import find_next_step
from workbench.rendering import refresh_when_done, render_page

REJECTED = DiagnosisState.REJECTED


@require_safe
def cluster_list(request: Request, harness: str) -> HttpResponse:
    """List clusters, the largest first, with the latest clustering."""
    record = get_harness_for(request, harness)
    job = cluster_queries.latest_job(record, JobKind.CLUSTER)
    running = cluster_queries.is_running(job)
    state = request.GET.get("state", "live")
    clusters = cluster_queries.list_clusters(record, state)
    context = {
        "clusters": [
            (cluster, find_next_step(cluster, record.name, _standing(cluster))) for cluster in clusters
        ],
        "job": job,
        "is_running": running,
        "state": state,
        "states": ClusterState.choices,
        "unclustered": cluster_queries.count_unclustered(record),
        "open_failures": cluster_queries.count_open(record),
    }
    return refresh_when_done(request, running=running) or render_page(
        request, "clusters.html", context, record
    )


def _standing(cluster: Cluster) -> list[Diagnosis]:
    diagnoses: list[Diagnosis] = cluster.standing_diagnoses  # type: ignore[attr-defined]  # the query's
    return diagnoses


@require_POST
def start(request: Request, harness: str) -> HttpResponse:
    """Cluster the open failures."""
    record = get_harness_for(request, harness)
    with told(request):
        cluster_actions.start_clustering(actor_of(request), record)
    return redirect("clusters", record.name)


@require_safe
def cluster_page(request: Request, harness: str, number: int) -> HttpResponse:
    """Show a cluster: members, diagnoses with their evidence, and a diagnosis in progress."""
    cluster = get_for(request, harness, Cluster.objects.defer("centroid"), number=number)
    record = get_harness_for(request, harness)
    job = cluster_queries.latest_job(record, JobKind.DIAGNOSE, cluster.pk)
    running = cluster_queries.is_running(job)
    diagnoses = cluster_queries.list_diagnoses(cluster)
    context = {
        "cluster": cluster,
        "members": cluster_queries.list_members(cluster),
        "size": cluster.members.count(),
        "diagnoses": [(diagnosis, cluster_queries.list_quotes(diagnosis)) for diagnosis in diagnoses],
        "rejections": cluster_queries.list_rejections(diagnoses),
        "next": find_next_step(cluster, record.name, [d for d in diagnoses if d.state != REJECTED]),
        "job": job,
        "is_running": running,
    }
    return refresh_when_done(request, running=running) or render_page(
        request, "cluster.html", context, record
    )


@require_POST
def rename(request: Request, harness: str, number: int) -> HttpResponse:
    """Give a cluster a better name."""
    cluster = get_for(request, harness, Cluster, number=number)
    with told(request, _("Renamed.")):
        name = read_form(NameForm(request.POST))["name"]
        cluster_actions.rename_cluster(actor_of(request), cluster, name)
    return redirect("cluster", harness, number)


@require_POST
def ignore(request: Request, harness: str, number: int) -> HttpResponse:
    """Leave a cluster alone, with a reason."""
    cluster = get_for(request, harness, Cluster, number=number)
    with told(request, _("The cluster is ignored.")):
        cluster_actions.ignore_cluster(actor_of(request), cluster, read_reason(request.POST))
    return redirect("cluster", harness, number)


@require_POST
def diagnose(request: Request, harness: str, number: int) -> HttpResponse:
    """Have the diagnoser look for the cause of a cluster."""
    cluster = get_for(request, harness, Cluster, number=number)
    with told(request):
        diagnosis_actions.start_diagnosis(actor_of(request), cluster)
    return redirect("cluster", harness, number)
