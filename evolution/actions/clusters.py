"""What people do with clusters: have the failures clustered, name a cluster, put one aside."""

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.jobs import create_job
from evolution.models import Cluster, FailureCase, Harness, Job
from evolution.states import CaseState, ClusterState, JobKind
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import move, record


@transaction.atomic
def start_clustering(actor: Actor, harness: Harness, *, enqueue: bool = True) -> Job:
    """Have the open failures clustered; a clustering that waits or runs already is returned.

    With `enqueue` false the caller performs the job itself.
    """
    actor.require(Role.DEVELOPER)
    job, new = create_job(actor, harness, JobKind.CLUSTER)
    if new and enqueue:
        enqueue_job(job)
    return job


@transaction.atomic
def rename_cluster(actor: Actor, cluster: Cluster, name: str) -> None:
    """Name a cluster; a later diagnosis leaves the name alone."""
    actor.require(Role.DEVELOPER)
    name = " ".join(name.split())[:200]
    if not name:
        raise LoopError(_("a cluster needs a name"))
    record(actor, "cluster.renamed", cluster, old=cluster.name, new=name)
    cluster.name = name
    cluster.save(update_fields=["name", "updated_at"])


@transaction.atomic
def ignore_cluster(actor: Actor, cluster: Cluster, reason: str) -> None:
    """Put a cluster and its open failures aside."""
    actor.require(Role.DEVELOPER)
    if cluster.state == ClusterState.IGNORED:
        return
    move(cluster, ClusterState.IGNORED, actor, reason)
    for case in FailureCase.objects.filter(cluster=cluster, state=CaseState.OPEN):
        move(case, CaseState.IGNORED, actor, reason, note=reason)
