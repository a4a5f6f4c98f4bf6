"""Clusters: the list with clustering in progress, the queue of the unclustered, and what people do with clusters."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import clusters as cluster_actions
from evolution.actions import diagnosis as diagnosis_actions
from evolution.actors import Role
from evolution.adapters.chat import Role as ModelRole
from evolution.adapters.model_choice import check_model
from evolution.models import Cluster, Harness
from evolution.queries import clusters as cluster_queries
from evolution.queries.case_filters import UNCLUSTERED, CaseFilter
from evolution.queries.cases import find_ids, list_cases
from evolution.queries.cluster_likeness import suggest_clusters
from evolution.states import ClusterState, JobKind
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.case_options import draw_options, read_surroundings
from workbench.diagnosis_forms import ModelForm
from workbench.forms import (
    CasePlaceForm,
    ClusterFilterForm,
    GroupForm,
    MergeForm,
    NameForm,
    read_form,
    read_reason,
)
from workbench.last_bulk import read_last_bulk
from workbench.next_steps import find_next_step
from workbench.rendering import refresh_when_done, render_page
from workbench.views.case_bulk import read_ids, read_selection
from workbench.views.cases import count_matching


@require_safe
def cluster_list(request: Request, harness: str) -> HttpResponse:
    """List clusters, the largest first, with the latest clustering."""
    record = get_harness_for(request, harness)
    job = cluster_queries.latest_job(record, JobKind.CLUSTER)
    running = cluster_queries.is_running(job)
    if answer := refresh_when_done(request, running=running):
        return answer
    wanted = ClusterFilterForm(request.GET).wanted()
    listed = cluster_queries.list_clusters(record, wanted)
    context = {
        "listed": listed,
        "clusters": [(row, find_next_step(row.cluster, record.name, row.diagnoses)) for row in listed.rows],
        "page": listed.page,
        "job": job,
        "is_running": running,
        "wanted": wanted,
        "states": [(value, label, listed.states.get(value, 0)) for value, label in ClusterState.choices],
        "unclustered": cluster_queries.count_unclustered(record),
        "open_failures": cluster_queries.count_open(record),
    }
    return render_page(request, "clusters.html", context, record)


@require_safe
def unclustered(request: Request, harness: str) -> HttpResponse:
    """The open failures that belong to no cluster, newest first, with the cluster that is nearest to each."""
    record = get_harness_for(request, harness)
    wanted = CaseFilter(cluster=UNCLUSTERED)
    page = list_cases(record, wanted, **CasePlaceForm(request.GET).place())
    context = {
        "page": page,
        "wanted": wanted,
        "bulk_query": "state=open&cluster=none",
        "nearest": suggest_clusters(record, page.rows),
        "unclustered": cluster_queries.count_unclustered(record),
        "unseen": cluster_queries.count_unseen(record),
        "open_failures": cluster_queries.count_open(record),
        "has_clusters": record.clusters.exists(),
        **around_bulk(request, record),
    }
    if request.GET.get("all"):
        with told(request):
            context |= count_matching(record, wanted)
    return render_page(request, "unclustered.html", context, record)


def around_bulk(request: Request, harness: Harness) -> dict[str, object]:
    """What the buttons over a list of cases offer."""
    offered = read_surroundings(harness, actor_of(request).name).options
    return {
        "options": draw_options(offered, CaseFilter()),
        "last_bulk": read_last_bulk(request, harness),
    }


@require_POST
def start(request: Request, harness: str) -> HttpResponse:
    """Cluster the open failures."""
    record = get_harness_for(request, harness)
    with told(request):
        cluster_actions.start_clustering(actor_of(request), record)
    return redirect("clusters", record.name)


@require_POST
def create(request: Request, harness: str) -> HttpResponse:
    """Make a cluster of the chosen cases."""
    record = get_harness_for(request, harness)
    actor = actor_of(request)
    with told(request, _("The cluster is made.")):
        actor.require(Role.DEVELOPER)
        given = read_form(GroupForm(request.POST))
        chosen = read_selection(request, given)
        ids = find_ids(record, chosen) if isinstance(chosen, CaseFilter) else chosen
        cluster = cluster_actions.create_cluster(actor, record, list(ids), given["name"], given["reason"])
        return redirect("cluster", harness, cluster.number)
    return redirect("clusters", harness)


@require_POST
def split(request: Request, harness: str, number: int) -> HttpResponse:
    """Make a cluster of its own of chosen members."""
    cluster = get_for(request, harness, Cluster.objects.select_related("harness"), number=number)
    with told(request, _("The failures are a cluster of their own now.")):
        actor_of(request).require(Role.DEVELOPER)
        given = read_form(GroupForm(request.POST))
        new = cluster_actions.split_cluster(
            actor_of(request), cluster, read_ids(request.POST), given["name"], given["reason"]
        )
        return redirect("cluster", harness, new.number)
    return redirect("cluster", harness, number)


@require_POST
def merge(request: Request, harness: str, number: int) -> HttpResponse:
    """Merge other clusters into this one."""
    cluster = get_for(request, harness, Cluster.objects.select_related("harness"), number=number)
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
        form = MergeForm(request.POST)
        reason = read_form(form)["reason"]
        wanted = form.read_numbers(request.POST.getlist("others")) - {number}
        others = list(Cluster.objects.filter(harness=cluster.harness, number__in=wanted))
        if len(others) < len(wanted):
            missing = sorted(wanted - {other.number for other in others})
            return _tell_missing(request, cluster, missing)
        moved = cluster_actions.merge_clusters(actor_of(request), cluster, others, reason)
        text = ngettext("Merged; %d failure came with it.", "Merged; %d failures came with it.", moved)
        messages.success(request, text % moved)
    return redirect("cluster", harness, number)


def _tell_missing(request: Request, cluster: Cluster, numbers: list[int]) -> HttpResponse:
    text = _("There is no cluster with the number %(numbers)s.")
    messages.error(request, text % {"numbers": ", ".join(map(str, numbers))})
    return redirect("cluster", cluster.harness.name, cluster.number)


@require_POST
def rename(request: Request, harness: str, number: int) -> HttpResponse:
    """Give a cluster a better name."""
    cluster = get_for(request, harness, Cluster, number=number)
    with told(request, _("Renamed.")):
        actor_of(request).require(Role.DEVELOPER)
        name = read_form(NameForm(request.POST))["name"]
        cluster_actions.rename_cluster(actor_of(request), cluster, name)
    return redirect("cluster", harness, number)


@require_POST
def ignore(request: Request, harness: str, number: int) -> HttpResponse:
    """Leave a cluster alone, with a reason."""
    cluster = get_for(request, harness, Cluster, number=number)
    with told(request, _("The cluster is ignored.")):
        actor_of(request).require(Role.DEVELOPER)
        cluster_actions.ignore_cluster(actor_of(request), cluster, read_reason(request.POST))
    return redirect("cluster", harness, number)


@require_POST
def reopen(request: Request, harness: str, number: int) -> HttpResponse:
    """Take up a cluster again that was ignored."""
    cluster = get_for(request, harness, Cluster, number=number)
    with told(request, _("The cluster and its failures are open again.")):
        actor_of(request).require(Role.DEVELOPER)
        cluster_actions.reopen_cluster(actor_of(request), cluster, read_reason(request.POST))
    return redirect("cluster", harness, number)


@require_POST
def diagnose(request: Request, harness: str, number: int) -> HttpResponse:
    """Have the diagnoser look for the cause of a cluster, or a model that is named."""
    cluster = get_for(request, harness, Cluster, number=number)
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
        model = read_form(ModelForm(request.POST))["model"]
        check_model(ModelRole.DIAGNOSER, model)
        job = diagnosis_actions.start_diagnosis(actor_of(request), cluster, model)
        if job.parameters.get("model", "") != model:
            messages.info(request, _("A diagnosis is under way; ask the other model when it is done."))
    return redirect("cluster", harness, number)
