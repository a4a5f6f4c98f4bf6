"""What people do with diagnoses: have a cluster diagnosed, amend the diagnosis, accept or reject it."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actions.reasons import require_reason
from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.jobs import create_job
from evolution.loop.locks import lock_harness
from evolution.models import Cluster, Diagnosis, Job
from evolution.states import ClusterState, DiagnosisState, JobKind, ProposalState
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import move, record


@transaction.atomic
def start_diagnosis(actor: Actor, cluster: Cluster, *, enqueue: bool = True) -> Job:
    """Have a cluster diagnosed; a diagnosis that waits or runs already is returned."""
    actor.require(Role.DEVELOPER)
    if cluster.state == ClusterState.IGNORED:
        raise LoopError(_("%(cluster)s is ignored") % {"cluster": cluster})
    job, new = create_job(actor, cluster.harness, JobKind.DIAGNOSE, cluster.pk)
    if new and enqueue:
        enqueue_job(job)
    return job


@transaction.atomic
def amend_diagnosis(
    actor: Actor,
    diagnosis: Diagnosis,
    hypothesis: str | None = None,
    changes: Sequence[str] | None = None,
) -> None:
    """Correct what the model said; drafts made from now on follow the correction."""
    actor.require(Role.DEVELOPER)
    diagnosis = Diagnosis.objects.select_for_update().get(pk=diagnosis.pk)
    if diagnosis.state == DiagnosisState.REJECTED:
        raise LoopError(_("%(diagnosis)s is rejected") % {"diagnosis": diagnosis})
    old = {"hypothesis": diagnosis.hypothesis, "changes": diagnosis.changes}
    if hypothesis is not None and hypothesis.strip():
        diagnosis.hypothesis = hypothesis.strip()
    if changes is not None:
        diagnosis.changes = [line.strip() for line in changes if line.strip()]
    if old == {"hypothesis": diagnosis.hypothesis, "changes": diagnosis.changes}:
        return
    diagnosis.amended_by = actor.name
    diagnosis.save(update_fields=["hypothesis", "changes", "amended_by"])
    record(actor, "diagnosis.amended", diagnosis, "", old=old)


@transaction.atomic
def accept_diagnosis(actor: Actor, diagnosis: Diagnosis) -> None:
    """Say that the diagnosis is right."""
    actor.require(Role.DEVELOPER)
    if diagnosis.state != DiagnosisState.ACCEPTED:
        move(diagnosis, DiagnosisState.ACCEPTED, actor)


@transaction.atomic
def reject_diagnosis(actor: Actor, diagnosis: Diagnosis, reason: str) -> None:
    """Say that the diagnosis is wrong, and why; what was drafted for it can't be confirmed, nor go into a step.

    Raises LoopError when it is in a step that is not decided.
    """
    actor.require(Role.DEVELOPER)
    require_reason(reason)
    lock_harness(diagnosis.harness)
    diagnosis.refresh_from_db()
    proposal = diagnosis.proposals.filter(state=ProposalState.IN_STEP).select_related("step").first()
    if proposal is not None:
        raise LoopError(
            _("%(proposal)s is in %(step)s; take it out of the step first")
            % {"proposal": proposal, "step": proposal.step}
        )
    if diagnosis.state != DiagnosisState.REJECTED:
        move(diagnosis, DiagnosisState.REJECTED, actor, reason)
