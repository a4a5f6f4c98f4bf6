"""What people do with proposals: have one drafted, amend it by words or by hand, confirm it, reject it."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor, Role
from evolution.errors import LoopError, StaleState
from evolution.loop import proposals
from evolution.loop.jobs import create_job
from evolution.loop.repositories import open_repository
from evolution.models import Cluster, Diagnosis, Job, Proposal
from evolution.states import ClusterState, DiagnosisState, JobKind, ProposalState, is_allowed
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import move, record
from harness_repo.repository import MAIN

_ENDED = (ProposalState.REJECTED, ProposalState.RELEASED)


@transaction.atomic
def start_draft(actor: Actor, diagnosis: Diagnosis, *, enqueue: bool = True) -> Proposal:
    """Accept a diagnosis and have the editor draft its change; a failed draft is tried again.

    A diagnosis has one proposal at a time: one that is neither rejected nor released is returned as it is.
    """
    actor.require(Role.DEVELOPER)
    # Two clicks at once would both find no proposal.
    diagnosis = Diagnosis.objects.select_for_update(no_key=True).get(pk=diagnosis.pk)
    if diagnosis.state == DiagnosisState.REJECTED:
        raise LoopError(_("%(diagnosis)s is rejected") % {"diagnosis": diagnosis})
    if diagnosis.state == DiagnosisState.OPEN:
        move(diagnosis, DiagnosisState.ACCEPTED, actor)
    proposal = diagnosis.proposals.exclude(state__in=_ENDED).first() or _create(actor, diagnosis)
    if proposal.state == ProposalState.FAILED:
        move(proposal, ProposalState.DRAFTING, actor, base_commit=_fresh_base(proposal))
    if proposal.state == ProposalState.DRAFTING:
        _start_job(actor, proposal, enqueue=enqueue)
        _follow_cluster(diagnosis.cluster, ClusterState.IN_PROGRESS)
    return proposal


@transaction.atomic
def amend_proposal(actor: Actor, proposal: Proposal, feedback: str, *, enqueue: bool = True) -> Job:
    """Have the editor draft again after a reviewer's words: a new commit on top of the branch."""
    actor.require(Role.DEVELOPER)
    if not feedback.strip():
        raise LoopError(_("say what to change"))
    if proposal.state != ProposalState.DRAFTING:
        words = {"by": actor.name, "text": feedback.strip(), "at": timezone.now().isoformat(), "commit": ""}
        given = [*proposal.feedback, words]
        move(proposal, ProposalState.DRAFTING, actor, feedback.strip(), feedback=given)
    return _start_job(actor, proposal, enqueue=enqueue)


def edit_file(actor: Actor, proposal: Proposal, path: str, content: str | None, expected_head: str) -> str:
    """Put a reviewer's own version of a file on the branch (None deletes it); returns the commit.

    Raises StaleState when the branch is no longer at `expected_head`, EditRefused when the file can't be
    so. The proposal waits for review again.
    """
    actor.require(Role.DEVELOPER)
    if proposal.state not in {ProposalState.DRAFTED, ProposalState.CONFIRMED}:
        raise LoopError(_("%(proposal)s can't be edited now") % {"proposal": proposal})
    data = None if content is None else content.replace("\r\n", "\n").encode()
    head = proposals.commit_by_hand(actor, proposal, {path: data}, expected_head)
    _take_head(actor, proposal, head, path=path)
    return head


def confirm_proposal(actor: Actor, proposal: Proposal, reason: str = "") -> None:
    """Say that the proposal may go into a step.

    Raises StaleState when the branch moved since it was shown; the new head is then what is shown next.
    """
    actor.require(Role.DEVELOPER)
    head = proposals.branch_head(open_repository(proposal.harness), proposal)
    if head is not None and proposal.head_commit and head != proposal.head_commit:
        _take_head(SYSTEM, proposal, head)
        raise StaleState(_("the branch of %(proposal)s has moved; look at it again") % {"proposal": proposal})
    if proposal.state == ProposalState.CONFIRMED:
        return
    if head is None:
        raise LoopError(_("%(proposal)s has no branch to confirm") % {"proposal": proposal})
    proposals.check_mergeable(proposal)
    with transaction.atomic():
        move(proposal, ProposalState.CONFIRMED, actor, reason, decided_by=actor.name)


@transaction.atomic
def reject_proposal(actor: Actor, proposal: Proposal, reason: str) -> None:
    """Drop the proposal; its branch stays in the repository."""
    actor.require(Role.DEVELOPER)
    if proposal.state == ProposalState.REJECTED:
        return
    move(proposal, ProposalState.REJECTED, actor, reason, decided_by=actor.name)
    proposal.reason = reason
    proposal.save(update_fields=["reason", "updated_at"])
    diagnosis = proposal.diagnosis
    if diagnosis is None:
        return
    others = Proposal.objects.filter(diagnosis__cluster=diagnosis.cluster).exclude(state__in=_ENDED)
    if not others.exists():
        _follow_cluster(diagnosis.cluster, ClusterState.DIAGNOSED)


def _create(actor: Actor, diagnosis: Diagnosis) -> Proposal:
    base = open_repository(diagnosis.harness).resolve(MAIN)
    proposal = Proposal.objects.create(
        harness=diagnosis.harness,
        diagnosis=diagnosis,
        title=diagnosis.cluster.name[:200],
        base_commit=base,
    )
    record(actor, "proposal.created", proposal, base=base)
    return proposal


def _fresh_base(proposal: Proposal) -> str:
    """What is live now, for a proposal that has no branch yet."""
    repository = open_repository(proposal.harness)
    if proposals.branch_head(repository, proposal) is not None:
        return proposal.base_commit
    return repository.resolve(MAIN)


def _start_job(actor: Actor, proposal: Proposal, *, enqueue: bool) -> Job:
    job, new = create_job(actor, proposal.harness, JobKind.DRAFT, proposal.pk)
    if new and enqueue:
        enqueue_job(job)
    return job


def _take_head(actor: Actor, proposal: Proposal, head: str, **data: str) -> None:
    """Make a commit of the branch the proposal's head; if it was confirmed, it waits for review again."""
    with transaction.atomic():
        if proposal.state == ProposalState.CONFIRMED:
            move(proposal, ProposalState.DRAFTED, actor, "the branch has moved")
        proposal.head_commit = head
        proposal.manifest = proposals.rebuild_manifest(proposal, head)
        proposal.save(update_fields=["head_commit", "manifest", "updated_at"])
        record(actor, "proposal.committed", proposal, commit=head, **data)


def _follow_cluster(cluster: Cluster, state: ClusterState) -> None:
    """Let the cluster show that it is worked on, or no longer is."""
    if is_allowed(ClusterState(cluster.state), state):
        move(cluster, state, SYSTEM)
