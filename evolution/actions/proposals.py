"""What people do with proposals: have one drafted, amend it by words or by hand, reject it. See `reviews` too."""

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actions.reasons import require_reason
from evolution.actors import SYSTEM, Actor, Role
from evolution.adapters import chat
from evolution.errors import LoopError, StaleState
from evolution.loop import proposals
from evolution.loop.diagnosis import check_draftable
from evolution.loop.edits import EditRefused
from evolution.loop.jobs import create_job
from evolution.loop.locks import lock_harness, lock_record
from evolution.loop.outside import follow_ahead, follow_moved
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import take_head
from evolution.models import Cluster, Diagnosis, Job, Proposal
from evolution.states import ClusterState, DiagnosisState, JobKind, ProposalState, is_allowed
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import move, record
from harness_repo.git.repository import MAIN

# Of a model's name, as it is kept.
MODEL_LENGTH = 200

_ENDED = (ProposalState.REJECTED, ProposalState.RELEASED)
_UNDER_REVIEW = (ProposalState.DRAFTED, ProposalState.CONFIRMED)


@transaction.atomic
def start_draft(actor: Actor, diagnosis: Diagnosis, model: str = "", *, enqueue: bool = True) -> Proposal:
    """Accept a diagnosis and have the editor draft its change; a failed draft is tried again.

    A diagnosis has one proposal at a time of a model: one that is neither rejected nor released is returned as it is.
    Another `model` than the editor's makes an alternative beside it. Raises LoopError where the harness is not to
    blame.
    """
    actor.require(Role.DEVELOPER)
    # Two clicks at once would both find no proposal.
    lock_harness(diagnosis.harness)
    diagnosis = Diagnosis.objects.select_for_update(no_key=True).get(pk=diagnosis.pk)
    if diagnosis.state == DiagnosisState.REJECTED:
        raise LoopError(_("%(diagnosis)s is rejected") % {"diagnosis": diagnosis})
    check_draftable(diagnosis)
    if diagnosis.state == DiagnosisState.OPEN:
        move(diagnosis, DiagnosisState.ACCEPTED, actor)
    model = model.strip()[:MODEL_LENGTH]
    proposal = _find_living(diagnosis, model) or _create(actor, diagnosis, model)
    if proposal.state == ProposalState.FAILED:
        move(proposal, ProposalState.DRAFTING, actor, base_commit=_fresh_base(proposal))
    if proposal.state == ProposalState.DRAFTING:
        _start_job(actor, proposal, model, enqueue=enqueue)
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
        _send_back(actor, proposal, text)
    elif not any(item["text"] == text and not item.get("commit") for item in proposal.feedback):
        raise LoopError(
            _("the editor is at work on %(proposal)s; amend what it drafts") % {"proposal": proposal}
        )
    return _start_job(actor, proposal, enqueue=enqueue)


@transaction.atomic
def redraft_proposal(actor: Actor, proposal: Proposal, feedback: str = "", *, enqueue: bool = True) -> Job:
    """Have the editor draft anew on what is live now, with the old draft before its eyes, and a reviewer's words.

    The branch goes on from its head: the new commit has that and the live version as parents. Asked again while it
    drafts, nothing changes. Raises LoopError when the proposal has no draft, is in a step, or starts from what is live.
    """
    actor.require(Role.DEVELOPER)
    lock_record(proposal)
    if proposal.state == ProposalState.DRAFTING and proposals.new_base(proposal) != proposal.base_commit:
        return _start_job(actor, proposal, enqueue=enqueue)
    if proposal.state not in _UNDER_REVIEW:
        raise LoopError(_("%(proposal)s can't be drafted anew now") % {"proposal": proposal})
    live = open_repository(proposal.harness).resolve(MAIN)
    if live == proposal.base_commit:
        raise LoopError(_("%(proposal)s starts from what is live; amend it instead") % {"proposal": proposal})
    _send_back(actor, proposal, feedback.strip(), onto=live)
    return _start_job(actor, proposal, enqueue=enqueue)


def edit_file(
    actor: Actor,
    proposal: Proposal,
    path: str,
    content: str | None,
    expected_head: str,
    *,
    new_path: str = "",
    message: str = "",
) -> str:
    """Put a reviewer's own version of a file on the branch (None deletes it); returns the commit.

    With `new_path` the file moves there; `message` is the commit's, one line. What others put on the branch is
    taken first, and marked as theirs. Raises StaleState when the branch is not at `expected_head`, EditRefused when
    the file can't be so, LoopError when the branch was rewritten. The proposal waits for review again.
    """
    actor.require(Role.DEVELOPER)
    follow_ahead(SYSTEM, proposal)
    with transaction.atomic():
        lock_record(proposal)
        if proposal.state not in _UNDER_REVIEW:
            raise LoopError(_("%(proposal)s can't be edited now") % {"proposal": proposal})
        if follow_moved(SYSTEM, proposal) == expected_head:
            edits = _read_edit(proposal, path, content, new_path)
            head = proposals.commit_by_hand(actor, proposal, edits, expected_head, message)
            take_head(actor, proposal, head, path=new_path or path)
            return head
    # After the transaction, which keeps what others have done.
    raise StaleState(_("the branch of %(proposal)s has moved; reload it") % {"proposal": proposal})


def _read_edit(proposal: Proposal, path: str, content: str | None, new_path: str) -> dict[str, bytes | None]:
    data = None if content is None else content.replace("\r\n", "\n").encode()
    if new_path in ("", path):
        return {path: data}
    if new_path in open_repository(proposal.harness).files(proposal.head_commit):
        raise EditRefused(_("%(path)s is there already") % {"path": new_path})
    return {path: None, new_path: data}


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


def _find_living(diagnosis: Diagnosis, model: str) -> Proposal | None:
    """The proposal of a diagnosis that a model has drafted or is to draft; of any model, where none is asked for."""
    living = diagnosis.proposals.exclude(state__in=_ENDED)
    found = list(living.filter(model=model) if model else living)
    return min(found, key=lambda proposal: proposal.state == ProposalState.FAILED, default=None)


def _create(actor: Actor, diagnosis: Diagnosis, model: str) -> Proposal:
    base = open_repository(diagnosis.harness).resolve(MAIN)
    proposal = Proposal.objects.create(
        harness=diagnosis.harness,
        diagnosis=diagnosis,
        title=diagnosis.cluster.name[:200],
        base_commit=base,
        model=model or chat.model_name(chat.Role.EDITOR)[:MODEL_LENGTH],
        created_by=actor.name,
    )
    record(actor, "proposal.created", proposal, base=base, diagnosis=diagnosis.pk, model=proposal.model)
    return proposal


def _send_back(actor: Actor, proposal: Proposal, text: str, **more: str) -> None:
    words = {"by": actor.name, "text": text, "at": timezone.now().isoformat(), "commit": "", **more}
    move(proposal, ProposalState.DRAFTING, actor, text, feedback=[*proposal.feedback, words])


def _fresh_base(proposal: Proposal) -> str:
    """What is live now, for a proposal that has no branch yet."""
    repository = open_repository(proposal.harness)
    if proposals.branch_head(repository, proposal) is not None:
        return proposal.base_commit
    return repository.resolve(MAIN)


def _start_job(actor: Actor, proposal: Proposal, model: str = "", *, enqueue: bool) -> Job:
    """The job that drafts it: by the model asked for, or else the one that was asked for before."""
    last = Job.objects.filter(kind=JobKind.DRAFT, target_id=proposal.pk).first()
    model = model or str(last.parameters.get("model") or "" if last is not None else "")
    parameters = {"model": model} if model else None
    job, new = create_job(actor, proposal.harness, JobKind.DRAFT, proposal.pk, parameters)
    if new and enqueue:
        enqueue_job(job)
    return job


def _follow_cluster(cluster: Cluster, state: ClusterState) -> None:
    """Let the cluster show that it is worked on, or no longer is."""
    if is_allowed(ClusterState(cluster.state), state):
        move(cluster, state, SYSTEM)
