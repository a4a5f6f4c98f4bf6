"""What people do while they judge a proposal: approve a version of it, ask for changes, talk about its lines."""

from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from evolution.actions.proposals import amend_proposal
from evolution.actors import SYSTEM, Actor, NotAllowed, Role
from evolution.errors import LoopError, StaleState
from evolution.loop import proposals
from evolution.loop.locks import lock_record
from evolution.loop.outside import follow_ahead, follow_moved
from evolution.loop.repositories import open_repository
from evolution.loop.review_threads import NEW, OLD, commit_of, compose_instruction, place_threads, read_line
from evolution.loop.reviews import approvals, is_approved, record_review
from evolution.loop.version_faults import list_version_faults
from evolution.models import Job, Proposal, ReviewComment, ReviewThread
from evolution.states import DiagnosisState, ProposalState, ReviewVerdict
from evolution.transitions import move, record

LONGEST_COMMENT = 10_000

_UNDER_REVIEW = (ProposalState.DRAFTED, ProposalState.CONFIRMED)


@dataclass(frozen=True)
class Place:
    """A line of a proposal's diff: `side` is "old" or "new", line 0 the file as a whole, no path all of it."""

    path: str = ""
    side: str = NEW
    line: int = 0


def approve_proposal(
    actor: Actor, proposal: Proposal, text: str = "", *, reviewed: str | None = None
) -> bool:
    """Approve the proposal as it is at the commit that was `reviewed` (default: as loaded).

    With enough approvals it is confirmed: a step can take it. Returns whether it is. Raises StaleState when the
    branch moved since, and the new head is then what is shown next.
    """
    actor.require(Role.DEVELOPER)
    shown = proposal.head_commit if reviewed is None else reviewed
    _read_ahead(proposal)
    with transaction.atomic():
        lock_record(proposal)
        head = proposals.branch_head(open_repository(proposal.harness), proposal)
        if head is None:
            raise LoopError(_("%(proposal)s has no branch to approve") % {"proposal": proposal})
        if proposal.state in _UNDER_REVIEW:
            follow_moved(SYSTEM, proposal)
        if proposal.head_commit == shown:
            return _approve(actor, proposal, text.strip())
    # After the transaction, which keeps the new head.
    raise StaleState(_("the branch of %(proposal)s has moved; look at it again") % {"proposal": proposal})


def _read_ahead(proposal: Proposal) -> None:
    """What takes a while, so that nobody is made to wait for it: the decision finds it done."""
    follow_ahead(SYSTEM, proposal)
    if proposal.state == ProposalState.DRAFTED and proposal.head_commit:
        list_version_faults(proposal)


def _approve(actor: Actor, proposal: Proposal, text: str) -> bool:
    if proposal.state == ProposalState.IN_STEP:
        raise LoopError(_("%(proposal)s is in a step already") % {"proposal": proposal})
    if proposal.diagnosis is not None and proposal.diagnosis.state == DiagnosisState.REJECTED:
        raise LoopError(_("the diagnosis behind %(proposal)s is rejected") % {"proposal": proposal})
    if proposal.state == ProposalState.DRAFTED:
        proposals.check_mergeable(proposal)
    if proposal.state in _UNDER_REVIEW:
        _record_approval(actor, proposal, text)
        if proposal.state == ProposalState.CONFIRMED or not is_approved(proposal):
            return proposal.state == ProposalState.CONFIRMED
    move(proposal, ProposalState.CONFIRMED, actor, text, decided_by=actor.name)
    return True


def _record_approval(actor: Actor, proposal: Proposal, text: str) -> None:
    if any(review.reviewer == actor.name for review in approvals(proposal)):
        return
    record_review(actor, proposal, ReviewVerdict.APPROVED, text)
    if proposal.outside_commit:
        proposal.outside_commit = ""
        proposal.save(update_fields=["outside_commit", "updated_at"])


@transaction.atomic
def withdraw_approval(actor: Actor, proposal: Proposal, reason: str = "") -> None:
    """Take one's own approval back; a proposal that then lacks one waits for review again.

    Without an approval nothing happens. Raises LoopError while the proposal is in a step.
    """
    actor.require(Role.DEVELOPER)
    lock_record(proposal)
    if all(review.reviewer != actor.name for review in approvals(proposal)):
        return
    if proposal.state not in _UNDER_REVIEW:
        raise LoopError(
            _("%(proposal)s is %(state)s; its approvals can't be taken back now")
            % {"proposal": proposal, "state": proposal.get_state_display()}
        )
    record_review(actor, proposal, ReviewVerdict.WITHDRAWN, reason.strip())
    if proposal.state == ProposalState.CONFIRMED and not is_approved(proposal):
        move(proposal, ProposalState.DRAFTED, actor, reason.strip())


@transaction.atomic
def request_changes(
    actor: Actor, proposal: Proposal, text: str, *, reviewed: str | None = None, enqueue: bool = True
) -> Job:
    """Send the proposal back to the editor with the reviewer's words and the open threads as one instruction.

    The threads stay open; the instruction keeps their ids, and then the commit that answers it. Raises
    StaleState when the head is not what was `reviewed`, LoopError when there is nothing to say.
    """
    actor.require(Role.DEVELOPER)
    shown = proposal.head_commit if reviewed is None else reviewed
    lock_record(proposal)
    if proposal.head_commit != shown:
        raise StaleState(_("the branch of %(proposal)s has moved; look at it again") % {"proposal": proposal})
    open_threads = list(proposal.threads.filter(resolved_at=None).prefetch_related("comments"))
    instruction = compose_instruction(text, place_threads(proposal, open_threads))
    if not instruction:
        raise LoopError(_("say what to change, or comment on a line"))
    if proposal.state in _UNDER_REVIEW:
        record_review(actor, proposal, ReviewVerdict.CHANGES, text.strip())
    said = len(proposal.feedback)
    job = amend_proposal(actor, proposal, instruction, enqueue=enqueue)
    if len(proposal.feedback) > said:
        proposal.feedback[-1]["threads"] = [thread.pk for thread in open_threads]
        proposal.save(update_fields=["feedback", "updated_at"])
    return job


@transaction.atomic
def begin_thread(
    actor: Actor, proposal: Proposal, place: Place, text: str, *, reviewed: str | None = None
) -> ReviewThread:
    """Comment on a line, a file or all of the diff between the base and the head that was `reviewed`.

    Raises LoopError for a line that is not there and when there is nothing to say, StaleState when the branch
    moved since. The same comment by the same person at the same place is kept once.
    """
    actor.require(Role.ANNOTATOR)
    said = _check_comment(text)
    lock_record(proposal)
    if reviewed is not None and proposal.head_commit != reviewed:
        raise StaleState(_("the branch has moved since you read it; your comment is still in the form"))
    commit = commit_of(proposal, place.side)
    if place.side not in (OLD, NEW) or not commit:
        raise LoopError(_("there is nothing to comment on"))
    repository = open_repository(proposal.harness)
    line_text = read_line(repository, commit, place.path, place.line) if place.path else ""
    where = {"commit": commit, "path": place.path, "side": place.side, "line": place.line}
    same = proposal.threads.filter(**where, created_by=actor.name, resolved_at=None, comments__text=said)
    if thread := same.first():
        return thread
    thread = ReviewThread.objects.create(
        proposal=proposal, **where, line_text=line_text, created_by=actor.name
    )
    ReviewComment.objects.create(thread=thread, author=actor.name, text=said)
    record(actor, "proposal.commented", proposal, said, thread=thread.pk, path=place.path, line=place.line)
    return thread


@transaction.atomic
def reply_to_thread(actor: Actor, thread: ReviewThread, text: str) -> ReviewComment:
    """Add to a thread; the words that stand last in it already are not said twice by the same person."""
    actor.require(Role.ANNOTATOR)
    said = _check_comment(text)
    _lock_thread(thread)
    last = thread.comments.last()
    if last is not None and (last.author, last.text) == (actor.name, said):
        return last
    comment = ReviewComment.objects.create(thread=thread, author=actor.name, text=said)
    record(actor, "proposal.commented", thread.proposal, said, thread=thread.pk)
    return comment


@transaction.atomic
def edit_comment(actor: Actor, comment: ReviewComment, text: str) -> None:
    """Change one's own words; the audit trail keeps those before. NotAllowed for another's."""
    actor.require(Role.ANNOTATOR)
    said = _check_comment(text)
    _lock_thread(comment.thread)
    comment.refresh_from_db()
    if comment.author != actor.name:
        raise NotAllowed(f"{actor.name} did not write this comment")
    if comment.text == said:
        return
    old, comment.text, comment.edited_at = comment.text, said, timezone.now()
    comment.save(update_fields=["text", "edited_at"])
    record(actor, "proposal.comment_edited", comment.thread.proposal, said, comment=comment.pk, old=old)


@transaction.atomic
def resolve_thread(actor: Actor, thread: ReviewThread, *, is_resolved: bool = True) -> None:
    """Say that what the thread is about is settled, or, `is_resolved` False, that it is not."""
    actor.require(Role.ANNOTATOR)
    _lock_thread(thread)
    if (thread.resolved_at is not None) == is_resolved:
        return
    thread.resolved_by = actor.name if is_resolved else ""
    thread.resolved_at = timezone.now() if is_resolved else None
    thread.save(update_fields=["resolved_by", "resolved_at"])
    verb = "proposal.thread_resolved" if is_resolved else "proposal.thread_reopened"
    record(actor, verb, thread.proposal, thread=thread.pk, path=thread.path, line=thread.line)


def _lock_thread(thread: ReviewThread) -> None:
    lock_record(thread.proposal)
    thread.refresh_from_db()


def _check_comment(text: str) -> str:
    said = text.replace("\r\n", "\n").strip()
    if not said:
        raise LoopError(_("say something"))
    if len(said) > LONGEST_COMMENT:
        raise LoopError(_("a comment has at most %(most)d characters") % {"most": LONGEST_COMMENT})
    return said
