"""What people do with a proposal's branch outside the workbench: push it, look for changes, decide between two."""

import contextlib
from collections.abc import Iterator, Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.adapters.remotes import read_remote
from evolution.errors import LoopError, StaleState
from evolution.loop import outside
from evolution.loop.authors import author_of
from evolution.loop.jobs import create_job
from evolution.loop.locks import lock_record
from evolution.loop.proposals import branch_head
from evolution.loop.repositories import open_repository
from evolution.loop.step_merges import explain_git_errors
from evolution.models import Harness, Job, Proposal
from evolution.states import JobKind
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import record
from harness_repo.git.errors import StaleBase
from harness_repo.git.messages import message_with_trailers
from harness_repo.git.remotes import fetched_branches
from harness_repo.git.repository import HarnessRepository
from harness_repo.git.superseding import build_superseding

# Whoever may do any of this.
NEEDED = Role.DEVELOPER


@transaction.atomic
def start_push(actor: Actor, proposal: Proposal, *, enqueue: bool = True) -> Job:
    """Have the proposal's branch pushed to the remote. LoopError when the harness has none."""
    actor.require(NEEDED)
    read_remote(proposal.harness)
    outside.check_pushable(proposal)
    job, is_new = create_job(actor, proposal.harness, JobKind.PUSH, proposal.pk)
    if is_new and enqueue:
        enqueue_job(job)
    return job


@transaction.atomic
def start_fetch(actor: Actor, harness: Harness, *, enqueue: bool = True) -> Job:
    """Have the remote's branches fetched, and what was added to those of proposals taken."""
    actor.require(NEEDED)
    read_remote(harness)
    job, is_new = create_job(actor, harness, JobKind.FETCH)
    if is_new and enqueue:
        enqueue_job(job)
    return job


def push_proposals(actor: Actor, harness: Harness, ids: Sequence[int] = ()) -> dict[str, str]:
    """Push the branches of these proposals now, by default of all under review; returns the commits by branch.

    LoopError for the first that can't be pushed; those before it are on the remote.
    """
    actor.require(NEEDED)
    remote = read_remote(harness)
    wanted = {"pk__in": ids} if ids else {"state__in": outside.FOLLOWED}
    proposals = {proposal.pk: proposal for proposal in harness.proposals.filter(**wanted).order_by("pk")}
    for pk in ids:
        if pk not in proposals:
            raise LoopError(_("there is no proposal %(pk)s of %(harness)s") % {"pk": pk, "harness": harness})
    found = [proposal for proposal in proposals.values() if ids or proposal.branch]
    return {proposal.branch: outside.push_branch(actor, proposal, remote) for proposal in found}


@transaction.atomic
def acknowledge_outside(actor: Actor, proposal: Proposal, head: str) -> None:
    """Say that a change from outside was looked at, as it is at `head`; nothing is approved by it."""
    actor.require(NEEDED)
    lock_record(proposal)
    if not proposal.outside_commit:
        return
    if proposal.head_commit != head:
        raise _moved(proposal)
    proposal.outside_commit = ""
    proposal.save(update_fields=["outside_commit", "updated_at"])
    record(actor, "proposal.outside_acknowledged", proposal, commit=head)


@transaction.atomic
def take_theirs(actor: Actor, proposal: Proposal, head: str) -> None:
    """Let the history that others have made count, which stands at `head`: here, or on the remote.

    Ours stays readable on a branch `replaced/...`. StaleState when neither stands there any more, LoopError when it is
    too large to be judged.
    """
    actor.require(NEEDED)
    lock_record(proposal)
    _check_followed(proposal)
    repository, ours = open_repository(proposal.harness), proposal.head_commit
    here = branch_head(repository, proposal)
    if head == ours == here:
        return
    if head != here and head != _remote_head(repository, proposal):
        raise _moved(proposal)
    outside.check_takeable(proposal, head)
    with _staying(proposal):
        _keep(repository, proposal, ours)
        here = _make_way(repository, proposal, here)
        if head != here:
            repository.move_branch(proposal.branch, head, expected_head=here)
    record(actor, "proposal.took_theirs", proposal, commit=head, old=ours)
    outside.take_outside(actor, proposal, head)


@transaction.atomic
def keep_ours(actor: Actor, proposal: Proposal, head: str) -> None:
    """Let the version that was looked at here count, against the history at `head` (empty: a deleted branch).

    Our branch goes back to it; what the remote has beside it is contained afterwards, and changes nothing, so that
    the branch can be pushed without force. What git does not let stand beside the branch is kept under another name.
    StaleState when nothing stands at `head` any more.
    """
    actor.require(NEEDED)
    lock_record(proposal)
    _check_followed(proposal)
    repository, ours = open_repository(proposal.harness), proposal.head_commit
    here, there = branch_head(repository, proposal), _remote_head(repository, proposal)
    if head not in {here or "", there}:
        raise _moved(proposal)
    with _staying(proposal):
        if here != ours or repository.is_pointer(proposal.branch):
            if here:
                _keep(repository, proposal, here)
            here = _make_way(repository, proposal, here)
            repository.move_branch(proposal.branch, ours, expected_head=here)
        new = _supersede(actor, repository, proposal, there) if head and head == there else ours
    record(actor, "proposal.kept_ours", proposal, commit=new, other=head)
    if new != ours:
        outside.move_head(actor, proposal, new)


def _supersede(actor: Actor, repository: HarnessRepository, proposal: Proposal, other: str) -> str:
    """Put a commit on our branch that contains the remote's, and has our files; the head, if that is so already."""
    ours = proposal.head_commit
    if not other or repository.is_ancestor(other, ours):
        return ours
    text = message_with_trailers("Keep the version of the workbench", {"Proposal": proposal.pk})
    new = build_superseding(repository, ours, other, author=author_of(actor), message=text)
    repository.move_branch(proposal.branch, new, expected_head=ours)
    return new


def _keep(repository: HarnessRepository, proposal: Proposal, commit: str) -> None:
    """Keep a version that the branch is about to leave readable, whatever git collects."""
    name = f"replaced/{proposal.pk}-{commit[:12]}"
    if name not in repository.branches():
        repository.move_branch(name, commit, expected_head=None)


def _make_way(repository: HarnessRepository, proposal: Proposal, here: str | None) -> str | None:
    """Put aside what keeps the branch from being one: that it stands for another, or names above and below its own.

    Returns where the branch is then, which was `here`.
    """
    ours = proposal.branch
    if repository.is_pointer(ours):
        repository.drop_pointer(ours)
        here = None
    for name, commit in repository.branches().items():
        if name.startswith(f"{ours}/") or ours.startswith(f"{name}/"):
            _keep(repository, proposal, commit)
            repository.delete_branch(name)
    return here


def _remote_head(repository: HarnessRepository, proposal: Proposal) -> str:
    try:
        remote = read_remote(proposal.harness).name
    except LoopError:
        return ""
    return fetched_branches(repository, remote).get(proposal.branch, "")


@contextlib.contextmanager
def _staying(proposal: Proposal) -> Iterator[None]:
    """Say so when the branch moved while it was about to."""
    try:
        with explain_git_errors():
            yield
    except LoopError as failure:
        raise (_moved(proposal) if isinstance(failure.__cause__, StaleBase) else failure) from failure


def _check_followed(proposal: Proposal) -> None:
    if proposal.state not in outside.FOLLOWED:
        values = {"proposal": proposal, "state": proposal.get_state_display()}
        raise LoopError(_("%(proposal)s is %(state)s; its branch can't move now") % values)


def _moved(proposal: Proposal) -> StaleState:
    return StaleState(_("the branch of %(proposal)s has moved; look at it again") % {"proposal": proposal})
