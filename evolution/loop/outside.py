"""Beside stage 4: a proposal's branch and what others do to it, on the remote or in our repository itself.

What only goes on from where we are is taken, and marked until somebody has looked at it. What does not is left for
people to decide: nothing is ever forced, here or there.
"""

import logging
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from enum import StrEnum

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.authors import list_authors
from evolution.loop.locks import lock_record
from evolution.loop.proposals import branch_head, rebuild_manifest
from evolution.loop.rebasing import BuiltRebase, find_unrecorded_rebase, record_rebase
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import carry_approvals, name_people
from evolution.loop.step_merges import explain_git_errors
from evolution.loop.version_size import find_size_fault
from evolution.models import Harness, Proposal
from evolution.states import ProposalState
from evolution.transitions import record
from harness_repo.git.errors import HarnessRepoError, StaleBase
from harness_repo.git.remotes import Remote, fetch_remote, fetched_branches, push_remote
from harness_repo.git.repository import MAIN, HarnessRepository

logger = logging.getLogger(__name__)

PREFIX = "proposal/"
# The states in which a branch that moves is a new version to look at.
FOLLOWED = (ProposalState.DRAFTED, ProposalState.CONFIRMED)
# Those whose branch is of use elsewhere.
PUSHABLE = (*FOLLOWED, ProposalState.IN_STEP, ProposalState.RELEASED)
# Releases that a branch may have taken in since it was begun.
_MOST_RELEASES = 50


class Here(StrEnum):
    """How our branch stands to the head that the proposal is known by."""

    SAME = "same"
    # commits were added by somebody else than the workbench
    MOVED = "moved"
    # the head is no longer part of it
    REWRITTEN = "rewritten"
    # it is no branch, but stands for another one
    POINTER = "pointer"
    DELETED = "deleted"


class There(StrEnum):
    """How the remote's branch, as it was fetched or pushed last, stands to ours."""

    NO_REMOTE = "no_remote"
    UNPUSHED = "unpushed"
    SAME = "same"
    BEHIND = "behind"
    # it has commits that we do not have, and nothing that we lack besides
    AHEAD = "ahead"
    DIVERGED = "diverged"
    DELETED = "deleted"
    # gone there, or still there, and part of what the remote has as main
    MERGED = "merged"


@dataclass(frozen=True)
class Standing:
    """Where a proposal's branch is, here and on the remote."""

    here: Here
    there: There
    # of our branch; empty when it is gone
    head: str = ""
    # of the remote's branch, as far as it is known
    remote_head: str = ""
    remote: str = ""
    # why what others have added, here or there, is not taken; empty where it is, or nothing was
    refused: str = ""

    @property
    def is_open(self) -> bool:
        """Whether somebody has to decide which of two histories counts."""
        is_ours_gone = self.here in {Here.REWRITTEN, Here.POINTER, Here.DELETED}
        return is_ours_gone or self.there == There.DIVERGED or bool(self.refused)


def read_standing(proposal: Proposal, remote: str = "", remote_main: str = "main") -> Standing:
    """Compare the proposal's head, its branch, and the branch of the remote of that name ("": there is none)."""
    repository = open_repository(proposal.harness)
    head = branch_head(repository, proposal) or ""
    here = _stand_here(repository, proposal, head)
    refused = _find_refusal(repository, proposal, head) if here == Here.MOVED else ""
    if not remote or not proposal.branch:
        return Standing(here, There.NO_REMOTE, head, refused=refused)
    branches = fetched_branches(repository, remote)
    known = branches.get(proposal.branch, "")
    there = _stand_there(repository, proposal, known, branches.get(remote_main, ""))
    if here == Here.SAME and there == There.AHEAD:
        refused = _find_refusal(repository, proposal, known)
    return Standing(here, there, head, known, remote, refused)


def _stand_here(repository: HarnessRepository, proposal: Proposal, head: str) -> Here:
    if not head:
        return Here.DELETED if proposal.head_commit else Here.SAME
    if repository.is_pointer(proposal.branch):
        return Here.POINTER
    if head == proposal.head_commit or proposal.state == ProposalState.DRAFTING:
        return Here.SAME
    return Here.MOVED if _contains(repository, head, proposal.head_commit) else Here.REWRITTEN


def _stand_there(repository: HarnessRepository, proposal: Proposal, theirs: str, main: str) -> There:
    ours = proposal.head_commit
    if main and ours and _contains(repository, main, ours):
        return There.MERGED
    if not theirs:
        return There.DELETED if proposal.pushed_commit else There.UNPUSHED
    if theirs == ours:
        return There.SAME
    if _contains(repository, ours, theirs):
        return There.BEHIND
    return There.AHEAD if _contains(repository, theirs, ours) else There.DIVERGED


def _contains(repository: HarnessRepository, descendant: str, ancestor: str) -> bool:
    """A commit that git has no longer contains nothing, and is in nothing."""
    try:
        return bool(ancestor) and repository.is_ancestor(ancestor, descendant)
    except HarnessRepoError:
        return False


def follow_branches(actor: Actor, harness: Harness, remote: str = "") -> list[Proposal]:
    """Take what others added to the branches of a harness's proposals; returns the proposals that have moved."""
    repository = open_repository(harness)
    ours = repository.branches()
    theirs = fetched_branches(repository, remote, PREFIX) if remote else {}
    followed = []
    for proposal in harness.proposals.filter(state__in=FOLLOWED).exclude(branch="").select_related("harness"):
        their_head = theirs.get(proposal.branch, "")
        has_moved = {ours.get(proposal.branch), their_head} - {None, "", proposal.head_commit}
        if has_moved and _try_follow(actor, proposal, their_head):
            followed.append(proposal)
    return followed


def _try_follow(actor: Actor, proposal: Proposal, theirs: str) -> bool:
    """One proposal's trouble is not the others': whatever was pushed to its branch, theirs are looked after."""
    try:
        return follow_branch(actor, proposal, theirs)
    except Exception:
        logger.exception("the branch of %s can't be followed", proposal)
        return False


@dataclass(frozen=True)
class Version:
    """What a proposal is known by: its base, and what is said of the change."""

    base: str
    manifest: dict[str, object]


@dataclass(frozen=True)
class _News:
    """What others have added to a branch, read before anybody has to wait for it."""

    # of the proposal, and of its branch, when it was read
    base: str
    head: str
    branch_at: str
    # the newest of what was added
    commit: str
    # what a rebase of ours took in that died before its record was written; empty for a change from outside
    onto: str
    # None for a rebase
    version: Version | None

    def holds(self, proposal: Proposal, branch_at: str | None) -> bool:
        """Whether the locked proposal is still as it was."""
        return (self.base, self.head, self.branch_at) == (
            proposal.base_commit,
            proposal.head_commit,
            branch_at,
        )


def follow_branch(actor: Actor, proposal: Proposal, theirs: str = "") -> bool:
    """Take what others added to our branch, or to the remote's, which stands at `theirs`; returns whether it moved.

    Only commits that go on from the head are taken, of a version that is not too large to be judged. A confirmed
    proposal waits for review again unless its diff is still the same.
    """
    news = _find_news(proposal, theirs) if proposal.state in FOLLOWED else None
    with transaction.atomic():
        lock_record(proposal)
        if proposal.state not in FOLLOWED:
            return False
        if theirs and theirs != proposal.pushed_commit:
            proposal.pushed_commit = theirs
            proposal.save(update_fields=["pushed_commit", "updated_at"])
        repository = open_repository(proposal.harness)
        if news is None or not news.holds(proposal, branch_head(repository, proposal)):
            return False
        if news.onto:
            record_rebase(actor, BuiltRebase(proposal, news.onto, news.commit, news.branch_at))
            return True
        if news.commit != news.branch_at:
            repository.move_branch(proposal.branch, news.commit, expected_head=news.branch_at)
        take_outside(actor, proposal, news.commit, news.version)
    return True


def _find_news(proposal: Proposal, theirs: str) -> _News | None:
    """What is to be taken; None when there is nothing, or nothing that can be."""
    repository, known = open_repository(proposal.harness), proposal.head_commit
    at = branch_head(repository, proposal)
    if not at or repository.is_pointer(proposal.branch) or not _contains(repository, at, known):
        return None
    new = theirs if theirs and _contains(repository, theirs, at) else at
    if new == known or _find_refusal(repository, proposal, new):
        return None
    onto = find_unrecorded_rebase(repository, proposal, new)
    version = None if onto else _read_version(proposal, new)
    return _News(proposal.base_commit, known, at, new, onto, version)


def _read_version(proposal: Proposal, head: str) -> Version:
    base = _find_base(open_repository(proposal.harness), proposal, head)
    based = copy(proposal)
    based.base_commit = base
    return Version(base, rebuild_manifest(based, head))


def _find_refusal(repository: HarnessRepository, proposal: Proposal, head: str) -> str:
    """Why a version is left where it is; empty when it can be taken."""
    try:
        fault = find_size_fault(repository, _find_base(repository, proposal, head), head)
        if not fault:
            repository.files(head)
    except HarnessRepoError as failure:
        return str(failure)
    return fault


def check_takeable(proposal: Proposal, head: str) -> None:
    """Raise LoopError when the version is too large to be judged, or can't be read."""
    refused = _find_refusal(open_repository(proposal.harness), proposal, head)
    if refused:
        text = _("the branch of %(proposal)s holds what can't be taken: %(reason)s")
        raise LoopError(text % {"proposal": proposal, "reason": refused})


def follow_ahead(actor: Actor, proposal: Proposal) -> None:
    """Take what others added before anybody is made to wait: a decision asks `follow_moved` again, under its lock."""
    at = branch_head(open_repository(proposal.harness), proposal)
    if proposal.state in FOLLOWED and at not in (None, proposal.head_commit):
        follow_branch(actor, proposal)


def follow_moved(actor: Actor, proposal: Proposal) -> str:
    """Take what others added to the branch of a proposal; returns its head, which is the branch's now.

    Nobody's word may go by what nobody was shown: LoopError when the branch is gone, was rewritten outside, or holds
    what can't be taken.
    """
    repository = open_repository(proposal.harness)
    head = branch_head(repository, proposal)
    if head is None:
        raise LoopError(_("%(proposal)s has no branch") % {"proposal": proposal})
    if head != proposal.head_commit and not follow_branch(actor, proposal):
        if _stand_here(repository, proposal, head) == Here.MOVED:
            check_takeable(proposal, head)
        text = _("the branch of %(proposal)s was rewritten outside; choose first which history counts")
        raise LoopError(text % {"proposal": proposal})
    return proposal.head_commit


def take_outside(actor: Actor, proposal: Proposal, head: str, version: Version | None = None) -> None:
    """Make what others have put on the branch the head of the locked proposal, and mark it as theirs."""
    repository = open_repository(proposal.harness)
    commits = repository.log_between(proposal.base_commit, head)
    by = repository.log(head, 1)[0].author
    proposal.outside_commit = head
    proposal.save(update_fields=["outside_commit", "updated_at"])
    # Whose addresses these are today: people change theirs.
    people = name_people(author.email for commit in commits for author in list_authors(commit))
    old = proposal.head_commit
    record(actor, "proposal.changed_outside", proposal, commit=head, by=by, old=old, people=people)
    move_head(actor, proposal, head, version)


def move_head(actor: Actor, proposal: Proposal, head: str, version: Version | None = None) -> None:
    """Know the locked proposal by this commit of its branch: its base moves when the branch has taken main in.

    `version` is what was read of it before, where it was.
    """
    old_base, old_head = proposal.base_commit, proposal.head_commit
    read = version or _read_version(proposal, head)
    proposal.base_commit, proposal.head_commit, proposal.manifest = read.base, head, read.manifest
    proposal.save(update_fields=["base_commit", "head_commit", "manifest", "updated_at"])
    record(actor, "proposal.committed", proposal, commit=head, base=proposal.base_commit)
    carry_approvals(actor, proposal, old_base, old_head)


def _find_base(repository: HarnessRepository, proposal: Proposal, head: str) -> str:
    """What was live when the branch last took it in: the newest of main and the releases that the head contains."""
    releases = proposal.harness.releases.order_by("-number").values_list("commit", flat=True)
    for commit in (repository.resolve(MAIN), *releases[:_MOST_RELEASES]):
        if commit == proposal.base_commit:
            break
        if _contains(repository, commit, proposal.base_commit) and _contains(repository, head, commit):
            return commit
    return proposal.base_commit


def fetch_branches(
    actor: Actor, harness: Harness, remote: Remote, *, is_round: bool = False
) -> tuple[Mapping[str, str], Mapping[str, str], list[Proposal]]:
    """Bring what the remote's branches have, and follow those of proposals.

    Returns the branches with their commits, those that were left out with the reason, and the proposals that moved.
    A round that found nothing new leaves no trace. LoopError when the remote can't be reached.
    """
    repository = open_repository(harness)
    with explain_git_errors():
        before = fetched_branches(repository, remote.name)
        result = fetch_remote(repository, remote)
    if not is_round or before != dict(result.branches):
        record(actor, "harness.fetched", harness, remote=remote.name, branches=dict(result.branches))
    return result.branches, result.skipped, follow_branches(actor, harness, remote.name)


def push_branch(actor: Actor, proposal: Proposal, remote: Remote) -> str:
    """Put the proposal's branch on the remote, as it was looked at; returns the commit that is there now.

    Safe to repeat. LoopError when the branch has moved since, the remote has other work on it, or can't be reached.
    """
    check_pushable(proposal)
    head, repository = proposal.head_commit, open_repository(proposal.harness)
    if branch_head(repository, proposal) != head:
        text = _("the branch of %(proposal)s has moved; look at it before it is pushed")
        raise LoopError(text % {"proposal": proposal})
    with explain_git_errors():
        try:
            push_remote(repository, remote, [proposal.branch], expected={proposal.branch: head})
        except StaleBase as failure:
            text = _(
                "%(remote)s has other commits on %(branch)s, so nothing was pushed: fetch them, and choose on the "
                "page of %(proposal)s which count"
            )
            values = {"remote": remote.name, "branch": proposal.branch, "proposal": proposal}
            raise LoopError(text % values) from failure
    with transaction.atomic():
        if proposal.pushed_commit != head:
            Proposal.objects.filter(pk=proposal.pk).update(pushed_commit=head)
            proposal.pushed_commit = head
            record(
                actor, "proposal.pushed", proposal, remote=remote.name, branch=proposal.branch, commit=head
            )
    return head


def check_pushable(proposal: Proposal) -> None:
    """Raise LoopError when the proposal has no branch to push, or one that nobody wants any more."""
    if proposal.state not in PUSHABLE or not proposal.branch:
        text = _("%(proposal)s is %(state)s; there is nothing of it to push")
        raise LoopError(text % {"proposal": proposal, "state": proposal.get_state_display()})
