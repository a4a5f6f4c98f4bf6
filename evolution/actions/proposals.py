"""What people do with proposals: have one drafted, amend it by words or by hand, confirm it, reject it."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actions.reasons import require_reason
from evolution.actors import SYSTEM, Actor, Role
from evolution.errors import LoopError, StaleState
from evolution.loop import proposals
from evolution.loop.jobs import create_job
from evolution.loop.locks import lock_harness, lock_record
from evolution.loop.repositories import open_repository
from evolution.models import Cluster, Diagnosis, Job, Proposal
from evolution.states import ClusterState, DiagnosisState, JobKind, ProposalState, is_allowed
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import move, record
from harness_repo.git.repository import MAIN

_ENDED = (ProposalState.REJECTED, ProposalState.RELEASED)
_UNDER_REVIEW = (ProposalState.DRAFTED, ProposalState.CONFIRMED)


@transaction.atomic
def start_draft(actor: Actor, diagnosis: Diagnosis, *, enqueue: bool = True) -> Proposal:
    """Accept a diagnosis and have the editor draft its change; a failed draft is tried again.

    A diagnosis has one proposal at a time: one that is neither rejected nor released is returned as it is.
    """
    actor.require(Role.DEVELOPER)
    # Two clicks at once would both find no proposal.
    lock_harness(diagnosis.harness)
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
    """Have the editor draft again after a reviewer's words: a new commit on top of the branch.

    While it drafts, the same words said again change nothing; others raise LoopError, for the editor would miss them.
    """
    actor.require(Role.DEVELOPER)
    text = feedback.strip()
    if not text:
        raise LoopError(_("say what to change"))
    lock_record(proposal)
    if proposal.state != ProposalState.DRAFTING:
        words = {"by": actor.name, "text": text, "at": timezone.now().isoformat(), "commit": ""}
        move(proposal, ProposalState.DRAFTING, actor, text, feedback=[*proposal.feedback, words])
    elif not any(item["text"] == text and not item.get("commit") for item in proposal.feedback):
        raise LoopError(
            _("the editor is at work on %(proposal)s; amend what it drafts") % {"proposal": proposal}
        )
    return _start_job(actor, proposal, enqueue=enqueue)


@transaction.atomic
def edit_file(actor: Actor, proposal: Proposal, path: str, content: str | None, expected_head: str) -> str:
    """Put a reviewer's own version of a file on the branch (None deletes it); returns the commit.

    Raises StaleState when the branch is no longer at `expected_head`, EditRefused when the file can't be
    so. The proposal waits for review again.
    """
    actor.require(Role.DEVELOPER)
    lock_record(proposal)
    if proposal.state not in _UNDER_REVIEW:
        raise LoopError(_("%(proposal)s can't be edited now") % {"proposal": proposal})
    data = None if content is None else content.replace("\r\n", "\n").encode()
    head = proposals.commit_by_hand(actor, proposal, {path: data}, expected_head)
    _take_head(actor, proposal, head, path=path)
    return head


def confirm_proposal(
    actor: Actor, proposal: Proposal, reason: str = "", *, reviewed: str | None = None
) -> None:
    """Say that the proposal may go into a step, as it is at the commit that was `reviewed` (default: as loaded).

    Raises StaleState when the branch moved since; the new head is then what is shown next.
    """
    actor.require(Role.DEVELOPER)
    shown = proposal.head_commit if reviewed is None else reviewed
    with transaction.atomic():
        lock_record(proposal)
        head = proposals.branch_head(open_repository(proposal.harness), proposal)
        if head is None:
            raise LoopError(_("%(proposal)s has no branch to confirm") % {"proposal": proposal})
        if head != proposal.head_commit and proposal.state in _UNDER_REVIEW:
            _take_head(SYSTEM, proposal, head)
        if proposal.head_commit == shown:
            _confirm(actor, proposal, reason)
            return
    # After the transaction, which keeps the new head.
    raise StaleState(_("the branch of %(proposal)s has moved; look at it again") % {"proposal": proposal})


def _confirm(actor: Actor, proposal: Proposal, reason: str) -> None:
    if proposal.state == ProposalState.CONFIRMED:
        return
    if proposal.diagnosis is not None and proposal.diagnosis.state == DiagnosisState.REJECTED:
        raise LoopError(_("the diagnosis behind %(proposal)s is rejected") % {"proposal": proposal})
    if proposal.state == ProposalState.DRAFTED:
        proposals.check_mergeable(proposal)
    move(proposal, ProposalState.CONFIRMED, actor, reason, decided_by=actor.name)


@transaction.atomic
def reject_proposal(actor: Actor, proposal: Proposal, reason: str) -> None:
    """Drop the proposal; its branch stays in the repository. Raises LoopError while it is in a step."""
    actor.require(Role.DEVELOPER)
    require_reason(reason)
    lock_record(proposal)
    if proposal.state == ProposalState.REJECTED:
        return
    if proposal.state == ProposalState.IN_STEP:
        raise LoopError(
            _("%(proposal)s is in %(step)s; take it out of the step first")
            % {"proposal": proposal, "step": proposal.step}
        )
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
    """Make a commit of the branch the head of the locked proposal; if it was confirmed, it waits for review again."""
    if proposal.state == ProposalState.CONFIRMED:
        move(proposal, ProposalState.DRAFTED, actor, _("the branch has moved"))
    proposal.head_commit = head
    proposal.manifest = proposals.rebuild_manifest(proposal, head)
    proposal.save(update_fields=["head_commit", "manifest", "updated_at"])
    record(actor, "proposal.committed", proposal, commit=head, **data)


def _follow_cluster(cluster: Cluster, state: ClusterState) -> None:
    """Let the cluster show that it is worked on, or no longer is."""
    if is_allowed(ClusterState(cluster.state), state):
        move(cluster, state, SYSTEM)
