"""What new failures make of a cluster's state: resolved ones regress, and one that grows fast escalates."""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db.models import Count, Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.models import Cluster, FailureCase
from evolution.states import CaseState, ClusterState, is_allowed
from evolution.transitions import move

# A cluster escalates when its failures of the last week are this many, and this many times the weekly mean of the
# weeks before; one that has not been seen before has no mean.
WEEK = timedelta(days=7)
WEEKS_BEFORE = 4
FEWEST = 5
TIMES = 2


def settle_states(actor: Actor, clusters: Iterable[Cluster], filled: Collection[int]) -> None:
    """Move the states that follow from the failures; `filled` are the ids of clusters with open ones.

    A resolved cluster with open failures has regressed; one with resolved failures only is resolved.
    """
    clusters = list(clusters)
    resolved = set(
        FailureCase.objects.filter(cluster__in=[cluster.pk for cluster in clusters], state=CaseState.RESOLVED)
        .order_by()
        .values_list("cluster_id", flat=True)
        .distinct()
    )
    for cluster in clusters:
        if cluster.pk in filled and cluster.state == ClusterState.RESOLVED:
            move(cluster, ClusterState.REGRESSED, actor, _("failures came back"))
            continue
        is_over = cluster.pk in resolved and cluster.pk not in filled
        if is_over and is_allowed(ClusterState(cluster.state), ClusterState.RESOLVED):
            move(cluster, ClusterState.RESOLVED, actor, _("all its failures are resolved"))
    escalate(actor, [cluster for cluster in clusters if cluster.pk in filled])


def escalate(actor: Actor, clusters: Iterable[Cluster], now: datetime | None = None) -> None:
    """Move the clusters that grow fast to escalating, with the figures."""
    now = now or timezone.now()
    allowed = {
        cluster.pk: cluster
        for cluster in clusters
        if is_allowed(ClusterState(cluster.state), ClusterState.ESCALATING)
    }
    for pk, recent, before in _count_weeks(list(allowed), now):
        if is_escalating(recent, before):
            mean = before / WEEKS_BEFORE
            values = {"recent": recent, "mean": f"{mean:g}"}
            reason = _("%(recent)d failures in a week, %(mean)s a week before") % values
            move(allowed[pk], ClusterState.ESCALATING, actor, reason)


def is_escalating(recent: int, before: int) -> bool:
    """Whether `recent` failures of a week are many beside those of the four weeks before."""
    return before > 0 and recent >= FEWEST and recent * WEEKS_BEFORE >= TIMES * before


def _count_weeks(clusters: list[int], now: datetime) -> list[tuple[int, int, int]]:
    if not clusters:
        return []
    rows = FailureCase.objects.filter(cluster__in=clusters).order_by().values("cluster_id")
    rows = rows.annotate(at=Coalesce("happened_at", "created_at")).values("cluster_id")
    this_week = Q(at__gt=now - WEEK, at__lte=now)
    earlier = Q(at__gt=now - (WEEKS_BEFORE + 1) * WEEK, at__lte=now - WEEK)
    counted = rows.annotate(recent=Count("pk", filter=this_week), before=Count("pk", filter=earlier))
    return list(counted.values_list("cluster_id", "recent", "before"))
