"""What people do with clusters: have the failures clustered, name, merge, split, put aside; later clusterings obey."""

from collections.abc import Collection, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.cluster_decisions import NAMED, make_cluster, note_moved, pin_cases
from evolution.loop.cluster_naming import PEOPLE
from evolution.loop.cluster_states import reason_of_ignoring, regress
from evolution.loop.jobs import create_job
from evolution.loop.locks import lock_harness
from evolution.models import Cluster, FailureCase, Harness, Job
from evolution.states import CaseState, ClusterState, JobKind
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import Told, move, move_all, record


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
    """Name a cluster; a later diagnosis leaves the name alone. Raises LoopError when it was merged."""
    actor.require(Role.DEVELOPER)
    _check_living(cluster)
    name = _clean_name(name)
    record(actor, "cluster.renamed", cluster, old=cluster.name, new=name)
    cluster.name, cluster.named_by = name, PEOPLE
    cluster.save(update_fields=["name", "named_by", "updated_at"])


@transaction.atomic
def ignore_cluster(actor: Actor, cluster: Cluster, reason: str) -> None:
    """Put a cluster and its open failures aside, and those that come later. Raises LoopError when it was merged."""
    actor.require(Role.DEVELOPER)
    _check_living(cluster)
    if cluster.state == ClusterState.IGNORED:
        return
    move(cluster, ClusterState.IGNORED, actor, reason)
    members = FailureCase.objects.filter(cluster=cluster, state=CaseState.OPEN)
    told = Told("cluster.moved", cluster, reason, {})
    move_all(members, CaseState.IGNORED, actor, told, note=reason)


@transaction.atomic
def reopen_cluster(actor: Actor, cluster: Cluster, reason: str = "") -> None:
    """Take a cluster up again, and its failures that were put aside with it, for the same reason.

    Those that people had put aside for themselves stay so. Raises LoopError when the cluster was merged.
    """
    actor.require(Role.DEVELOPER)
    _check_living(cluster)
    move(cluster, ClusterState.NEW, actor, reason)
    why = reason_of_ignoring(cluster)
    members = FailureCase.objects.filter(cluster=cluster, state=CaseState.IGNORED, note=why)
    move_all(members, CaseState.OPEN, actor, Told("cluster.moved", cluster, reason, {}), note="")


@transaction.atomic
def merge_clusters(actor: Actor, into: Cluster, others: Sequence[Cluster], reason: str = "") -> int:
    """Make clusters one, for good; returns how many failures came to `into`.

    The others keep their numbers and pages, and what would come to them comes to `into`. Raises LoopError when they
    are not of one harness, when one was merged already, when `into` is ignored, or when there is nothing to merge.
    """
    actor.require(Role.DEVELOPER)
    lock_harness(into.harness)
    merged = list(Cluster.objects.filter(pk__in=[other.pk for other in others]).exclude(pk=into.pk))
    into.refresh_from_db()
    _check_merge(into, merged)
    moved = 0
    for other in merged:
        count = FailureCase.objects.filter(cluster=other).update(cluster=into)
        other.merged_into = into
        other.save(update_fields=["merged_into", "updated_at"])
        record(actor, "cluster.merged", other, reason, into=into.number, cases=count)
        moved += count
    numbers = [other.number for other in merged]
    record(actor, "cluster.absorbed", into, reason, clusters=numbers, cases=moved)
    note_moved(into.harness, [into.pk])
    regress(actor, [into.pk])
    return moved


@transaction.atomic
def split_cluster(
    actor: Actor, cluster: Cluster, case_ids: Collection[int], name: str, reason: str = ""
) -> Cluster:
    """Make a cluster of some members, for good: they are pinned there, and later ones like them follow.

    What says the same as one of them word for word and is left out is pinned where it is. Raises LoopError when none
    of the cases is a member, or all are.
    """
    actor.require(Role.DEVELOPER)
    lock_harness(cluster.harness)
    members = FailureCase.objects.filter(cluster=cluster)
    chosen = list(members.filter(pk__in=case_ids).order_by("pk").values_list("pk", flat=True))
    if not chosen:
        raise LoopError(_("choose the failures that are to be a cluster of their own"))
    if len(chosen) == members.count():
        raise LoopError(_("all failures are chosen: there is nothing to split; rename the cluster instead"))
    new = make_cluster(cluster.harness, _clean_name(name), PEOPLE)
    texts = members.filter(pk__in=chosen).exclude(embedded_text="").values("embedded_text")
    members.exclude(pk__in=chosen).filter(embedded_text__in=texts).update(is_pinned=True)
    touched = pin_cases(cluster.harness, chosen, new)
    data = {"count": len(chosen), "cases": chosen[:NAMED]}
    record(actor, "cluster.split", cluster, reason, into=new.number, **data)
    record(actor, "cluster.created", new, reason, of=cluster.number, **data)
    note_moved(cluster.harness, touched)
    return new


@transaction.atomic
def create_cluster(
    actor: Actor, harness: Harness, case_ids: Collection[int], name: str, reason: str = ""
) -> Cluster:
    """Make a cluster of failures, wherever they are, for good: they are pinned there, and later ones like them follow.

    Raises LoopError when none of the cases is of the harness.
    """
    actor.require(Role.DEVELOPER)
    lock_harness(harness)
    found = FailureCase.objects.filter(harness=harness, pk__in=case_ids)
    chosen = list(found.order_by("pk").values_list("pk", flat=True))
    if not chosen:
        raise LoopError(_("choose the failures that are to be a cluster of their own"))
    new = make_cluster(harness, _clean_name(name), PEOPLE)
    touched = pin_cases(harness, chosen, new)
    record(actor, "cluster.created", new, reason, count=len(chosen), cases=chosen[:NAMED])
    note_moved(harness, touched)
    return new


def _check_merge(into: Cluster, others: Sequence[Cluster]) -> None:
    if not others:
        raise LoopError(_("choose at least one other cluster"))
    for cluster in (into, *others):
        _check_living(cluster)
        if cluster.harness_id != into.harness_id:
            raise LoopError(_("clusters of two harnesses can't be merged"))
    if into.state == ClusterState.IGNORED:
        raise LoopError(_("%(cluster)s is ignored: reopen it first") % {"cluster": into})


def _check_living(cluster: Cluster) -> None:
    cluster.refresh_from_db(fields=["merged_into"])
    if cluster.merged_into_id is not None:
        values = {"cluster": cluster, "into": cluster.merged_into}
        raise LoopError(_("%(cluster)s was merged into %(into)s") % values)


def _clean_name(name: str) -> str:
    name = " ".join(name.split())[:200]
    if not name:
        raise LoopError(_("a cluster needs a name"))
    return name
