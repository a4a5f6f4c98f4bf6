"""Inside promotion: the inbox follows what is live. Failures that it mends are resolved, and open again without it."""

from collections.abc import Iterable, Sequence

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.loop.regressions import load_scores
from evolution.models import Cluster, Evaluation, FailureCase, Step
from evolution.states import CaseState, ClusterState
from evolution.transitions import move

OPEN_CLUSTERS = (
    ClusterState.NEW,
    ClusterState.ESCALATING,
    ClusterState.DIAGNOSED,
    ClusterState.IN_PROGRESS,
    ClusterState.REGRESSED,
)


def resolve_mended(actor: Actor, evaluation: Evaluation) -> int:
    """Resolve open failures whose case passes in the evaluation, and clusters left without one; counts the cases."""
    mended = _failures(evaluation, _passing(evaluation)).filter(state=CaseState.OPEN)
    touched, count = _move_all(actor, mended, CaseState.RESOLVED, _("passes in %s") % evaluation)
    for cluster in Cluster.objects.filter(pk__in=touched, state__in=OPEN_CLUSTERS):
        if not cluster.members.filter(state=CaseState.OPEN).exists():
            move(cluster, ClusterState.RESOLVED, actor, _("all its cases pass in %s") % evaluation)
    return count


def reopen_unmended(actor: Actor, live: Evaluation, dropped: Sequence[Step]) -> int:
    """Open again what the dropped steps mended and what fails in `live`, the measurement of what is live without them.

    Clusters that were resolved with these failures have regressed. Counts the cases.
    """
    mended: set[str] = set()
    for step in dropped:
        mended |= _passing(step.candidate_evaluation) if step.candidate_evaluation else set()
    unmended = _failures(live, mended - _passing(live)).filter(state=CaseState.RESOLVED)
    touched, count = _move_all(actor, unmended, CaseState.OPEN, _("fails in %s, which is live again") % live)
    for cluster in Cluster.objects.filter(pk__in=touched, state=ClusterState.RESOLVED):
        move(cluster, ClusterState.REGRESSED, actor, _("what mended it was rolled back"))
    return count


def _passing(evaluation: Evaluation) -> set[str]:
    return {key for key, scores in load_scores(evaluation).items() if scores.is_passing}


def _failures(evaluation: Evaluation, keys: Iterable[str]) -> QuerySet[FailureCase]:
    """The failures of these cases, whichever version of the evaluation's dataset found them."""
    return FailureCase.objects.filter(
        harness=evaluation.harness,
        dataset_case__version__dataset=evaluation.dataset_version.dataset,
        dataset_case__key__in=list(keys),
    )


def _move_all(
    actor: Actor, failures: QuerySet[FailureCase], state: CaseState, reason: str
) -> tuple[set[int], int]:
    """Move the failures; returns the clusters they are in, and how many they are."""
    touched: set[int] = set()
    moved = list(failures.only("state", "cluster", "harness"))
    for case in moved:
        move(case, state, actor, reason)
        touched |= {case.cluster_id} if case.cluster_id else set()
    return touched, len(moved)
