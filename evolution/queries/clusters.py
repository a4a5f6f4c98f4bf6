"""Clusters with their sizes and categories, and one cluster with its members, diagnoses and work in progress."""

from dataclasses import dataclass
from typing import Any

from django.contrib.postgres.aggregates import ArrayAgg
from django.db.models import Count, Max, Prefetch, Q, QuerySet

from evolution.models import Cluster, Diagnosis, Event, FailureCase, Harness, Job, Proposal
from evolution.queries.cases import ROW_FIELDS
from evolution.states import CaseState, ClusterState, DiagnosisState, JobKind, JobState

SHOWN_MEMBERS = 100
LIVE = (
    ClusterState.NEW,
    ClusterState.ESCALATING,
    ClusterState.REGRESSED,
    ClusterState.DIAGNOSED,
    ClusterState.IN_PROGRESS,
)


@dataclass(frozen=True)
class Quote:
    """A piece of evidence of a diagnosis, with the case it was taken from when that case is still there."""

    case_id: int
    turn: int | None
    quote: str
    is_verified: bool
    title: str


def list_clusters(harness: Harness, state: str = "live") -> QuerySet[Cluster]:
    """Clusters with `open_cases`, `seen`, `categories` and `last_seen`, the largest first.

    `state` is one of ClusterState, `live` for those that want work, or `all`.
    """
    is_open = Q(members__state=CaseState.OPEN)
    clusters = Cluster.objects.filter(harness=harness).annotate(
        open_cases=Count("members", filter=is_open),
        all_cases=Count("members"),
        categories=ArrayAgg("members__category", filter=~Q(members__category=""), distinct=True, default=[]),
        last_seen=Max("members__created_at"),
    )
    if state == "live":
        clusters = clusters.filter(state__in=LIVE)
    elif state != "all":
        clusters = clusters.filter(state=state)
    proposals = Proposal.objects.select_related("step").only("id", "state", "diagnosis_id", "step__number")
    diagnoses = Diagnosis.objects.exclude(state=DiagnosisState.REJECTED).order_by("-id")
    diagnoses = diagnoses.prefetch_related(Prefetch("proposals", proposals.order_by("-id")))
    return (
        clusters.defer("centroid")
        .prefetch_related(Prefetch("diagnoses", diagnoses, to_attr="standing_diagnoses"))
        .order_by("-open_cases", "number")
    )


def count_unclustered(harness: Harness) -> int:
    """Open failures that belong to no cluster."""
    return FailureCase.objects.filter(harness=harness, state=CaseState.OPEN, cluster=None).count()


def count_open(harness: Harness) -> int:
    """Open failures."""
    return FailureCase.objects.filter(harness=harness, state=CaseState.OPEN).count()


def list_members(cluster: Cluster, limit: int = SHOWN_MEMBERS) -> list[FailureCase]:
    """The strongest members of a cluster."""
    members = FailureCase.objects.filter(cluster=cluster).select_related("cluster")
    return list(members.only(*ROW_FIELDS, "strength").order_by("-state", "-strength", "-id")[:limit])


def list_diagnoses(cluster: Cluster) -> list[Diagnosis]:
    """All diagnoses of a cluster, newest first, with their proposals."""
    proposals = Proposal.objects.select_related("step").order_by("-id")
    return list(cluster.diagnoses.order_by("-id").prefetch_related(Prefetch("proposals", proposals)))


def list_rejections(diagnoses: list[Diagnosis]) -> dict[int, Event]:
    """Who rejected each rejected diagnosis, and why, by its id."""
    rejected = [diagnosis.pk for diagnosis in diagnoses if diagnosis.state == DiagnosisState.REJECTED]
    events = Event.objects.filter(verb="diagnosis.rejected", target_kind="diagnosis", target_id__in=rejected)
    return {event.target_id: event for event in events.order_by("id")}


def list_quotes(diagnosis: Diagnosis) -> list[Quote]:
    """The evidence of a diagnosis; a case that is gone leaves its quote with an empty title."""
    rows: list[dict[str, Any]] = [row for row in diagnosis.evidence if isinstance(row, dict)]
    ids = [row["case"] for row in rows if isinstance(row.get("case"), int)]
    titles = dict(
        FailureCase.objects.filter(pk__in=ids, harness=diagnosis.harness_id).values_list("pk", "title")
    )
    return [
        Quote(
            case_id=row.get("case") or 0,
            turn=row.get("turn"),
            quote=str(row.get("quote", "")),
            is_verified=bool(row.get("verified")),
            title=titles.get(row.get("case") or 0, ""),
        )
        for row in rows
    ]


def latest_job(harness: Harness, kind: JobKind, target_id: int | None = None) -> Job | None:
    """The newest job of a kind about a record (or the whole harness), whatever its state."""
    jobs = Job.objects.filter(harness=harness, kind=kind)
    if target_id is not None:
        jobs = jobs.filter(target_id=target_id)
    return jobs.order_by("-id").first()


def is_running(job: Job | None) -> bool:
    """Whether a job has yet to end."""
    return job is not None and job.state in {JobState.QUEUED, JobState.RUNNING}
