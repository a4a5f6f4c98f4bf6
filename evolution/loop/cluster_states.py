"""What new failures make of a cluster's state: resolved ones regress, and one that grows fast escalates."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Count, Q
from django.db.models.functions import Coalesce
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.models import Cluster, Event, FailureCase
from evolution.states import CaseState, ClusterState, is_allowed
from evolution.transitions import Told, move, move_all

# A cluster escalates when its failures of the last week are this many, and this many times the weekly mean of the
# weeks before; one that has not been seen before has no mean.
WEEK = timedelta(days=7)
WEEKS_BEFORE = 4
FEWEST = 5
TIMES = 2


@transaction.atomic
def settle_states(actor: Actor, clusters: Collection[int]) -> None:
    """Move the states that follow from the failures of these clusters.

    A resolved cluster with open failures has regressed; one with resolved failures only is resolved.
    """
    regress(actor, clusters)
    is_open, is_resolved = _states(clusters)
    for cluster in _locked(is_resolved - is_open):
        if is_allowed(ClusterState(cluster.state), ClusterState.RESOLVED):
            move(cluster, ClusterState.RESOLVED, actor, _("all its failures are resolved"))


@transaction.atomic
def regress(actor: Actor, clusters: Collection[int]) -> None:
    """Let those of the clusters regress that are resolved and have open failures again."""
    is_open = FailureCase.objects.filter(cluster__in=list(clusters), state=CaseState.OPEN)
    resolved = (
        is_open.filter(cluster__state=ClusterState.RESOLVED).order_by().values_list("cluster_id", flat=True)
    )
    for cluster in _locked(set(resolved.distinct())):
        if cluster.state == ClusterState.RESOLVED:
            move(cluster, ClusterState.REGRESSED, actor, _("failures came back"))


@transaction.atomic
def escalate(
    actor: Actor, clusters: Collection[int], moved: Collection[int] = (), now: datetime | None = None
) -> None:
    """Move the clusters that grow fast to escalating, with the figures.

    Cases that a clustering has `moved` here from another cluster are not new, and do not count.
    """
    now = now or timezone.now()
    growing = {
        pk: (recent, before)
        for pk, recent, before in _count_weeks(clusters, moved, now)
        if is_escalating(recent, before)
    }
    for cluster in _locked(growing):
        recent, before = growing[cluster.pk]
        values = {"recent": recent, "mean": f"{before / WEEKS_BEFORE:g}"}
        if is_allowed(ClusterState(cluster.state), ClusterState.ESCALATING):
            reason = _("%(recent)d failures in a week, %(mean)s a week before") % values
            move(cluster, ClusterState.ESCALATING, actor, reason)


@transaction.atomic
def ignore_arrivals(actor: Actor, arrivals: Mapping[int, Collection[int]]) -> None:
    """Put aside what came to clusters that people have put aside, for the same reason; `arrivals` are case ids."""
    for cluster in _locked(arrivals):
        if cluster.state == ClusterState.IGNORED:
            cases = FailureCase.objects.filter(cluster=cluster, pk__in=list(arrivals[cluster.pk]))
            reason = reason_of_ignoring(cluster)
            told = Told("cluster.moved", cluster, _("they came to a cluster that is ignored"))
            move_all(cases.filter(state=CaseState.OPEN), CaseState.IGNORED, actor, told, note=reason)


def reason_of_ignoring(cluster: Cluster) -> str:
    """Why a cluster was last put aside."""
    events = Event.objects.filter(target_kind="cluster", target_id=cluster.pk, verb="cluster.ignored")
    return events.order_by("-pk").values_list("reason", flat=True).first() or ""


def is_escalating(recent: int, before: int) -> bool:
    """Whether `recent` failures of a week are many beside those of the four weeks before."""
    return before > 0 and recent >= FEWEST and recent * WEEKS_BEFORE >= TIMES * before


def _locked(clusters: Collection[int]) -> list[Cluster]:
    """The clusters as they are now, whatever was read before; nobody moves them until the transaction ends."""
    rows = Cluster.objects.filter(pk__in=list(clusters)).defer("centroid").order_by("pk")
    return list(rows.select_for_update(no_key=True)) if clusters else []


def _states(clusters: Collection[int]) -> tuple[set[int], set[int]]:
    """The clusters that have open failures, and those that have resolved ones."""
    rows = FailureCase.objects.filter(cluster__in=list(clusters)).order_by()
    found = set(rows.values_list("cluster_id", "state").distinct())
    return (
        {pk for pk, state in found if state == CaseState.OPEN and pk},
        {pk for pk, state in found if state == CaseState.RESOLVED and pk},
    )


def _count_weeks(
    clusters: Collection[int], moved: Collection[int], now: datetime
) -> list[tuple[int, int, int]]:
    if not clusters:
        return []
    members = FailureCase.objects.filter(cluster__in=list(clusters)).exclude(pk__in=list(moved)).order_by()
    rows = members.annotate(at=Coalesce("happened_at", "created_at")).values("cluster_id")
    this_week = Q(at__gt=now - WEEK, at__lte=now)
    earlier = Q(at__gt=now - (WEEKS_BEFORE + 1) * WEEK, at__lte=now - WEEK)
    counted = rows.annotate(recent=Count("pk", filter=this_week), before=Count("pk", filter=earlier))
    return list(counted.values_list("cluster_id", "recent", "before"))
