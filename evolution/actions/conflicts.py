"""What people do where proposals clash with each other or with what is live: settle it, open it again, move a base."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actions.proposals import amend_proposal, redraft_proposal
from evolution.actors import Actor, Role
from evolution.errors import LoopError, StaleState
from evolution.loop import rebasing
from evolution.loop.confirmations import confirm_resolution
from evolution.loop.conflict_resolutions import (
    Decision,
    decide_content,
    forget_resolution,
    store_resolution,
)
from evolution.loop.locks import lock_harness, lock_record
from evolution.loop.rebasing import Rebased
from evolution.loop.repositories import open_repository
from evolution.loop.step_merges import explain_git_errors, preview_merge
from evolution.models import ConflictResolution, Harness, Job, Proposal
from evolution.states import ProposalState
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.errors import MergeConflict, StaleBase
from harness_repo.git.repository import MAIN

_UNDER_REVIEW = (ProposalState.DRAFTED, ProposalState.CONFIRMED)


@transaction.atomic
def settle_conflict(
    actor: Actor, proposals: Sequence[Proposal], key: str, decision: Decision
) -> ConflictResolution:
    """Keep how a file's conflict between proposals of one harness, in their order, is to be settled.

    It holds for every later merge in which the same versions meet, till it is forgotten or settled otherwise. Raises
    StaleState when there is no such conflict any more, LoopError when the file can't be so.
    """
    actor.require(Role.DEVELOPER)
    if not proposals:
        raise LoopError(_("choose at least one approved proposal"))
    lock_harness(proposals[0].harness)
    with explain_git_errors():
        conflict = _find_conflict(proposals, key)
        content = decide_content(conflict, decision)
        return store_resolution(actor, proposals, conflict, content, decision.reason)


@transaction.atomic
def confirm_conflict(
    actor: Actor, proposals: Sequence[Proposal], key: str, reviewed: str | None = None
) -> None:
    """Confirm how somebody else settled a file's conflict between the proposals; `reviewed` is the text's digest.

    Where the harness needs a second reviewer, merges take it only then. Raises LoopError for whoever settled it or
    wrote one of the proposals that change the file, StaleState when it is settled otherwise by now, or not at all.
    """
    actor.require(Role.DEVELOPER)
    if not proposals:
        raise LoopError(_("choose at least one approved proposal"))
    lock_harness(proposals[0].harness)
    with explain_git_errors():
        conflict = _find_conflict(proposals, key)
        settled = proposals[0].harness.resolutions.filter(key=conflict.key).select_related("harness").first()
        if settled is None:
            raise StaleState(_("it was opened again meanwhile; look at it again"))
        confirm_resolution(actor, settled, proposals, reviewed)


def _find_conflict(proposals: Sequence[Proposal], key: str) -> FileConflict:
    """The conflict among those that the proposals have now, open or settled; StaleState."""
    preview = preview_merge(proposals[0].harness, proposals)
    files = [*(preview.conflict.files if preview.conflict else ()), *preview.settled]
    conflict = next((file for file in files if file.key == key), None)
    if conflict is None:
        raise StaleState(_("what clashes here is something else by now; look at it again"))
    return conflict


@transaction.atomic
def forget_conflict(actor: Actor, harness: Harness, pk: int) -> None:
    """Open a conflict again that was settled; forgotten already, nothing happens.

    What was merged with it stays as it is until it is built anew.
    """
    actor.require(Role.DEVELOPER)
    resolution = ConflictResolution.objects.select_for_update().filter(harness=harness, pk=pk).first()
    if resolution is not None:
        forget_resolution(actor, resolution)


@transaction.atomic
def rebase_proposal(actor: Actor, proposal: Proposal) -> Rebased:
    """Put a proposal under review on what is live now; its approvals hold where its diff stays the same.

    On it already, nothing happens. Raises LoopError where a conflict is open; then nothing has moved.
    """
    actor.require(Role.DEVELOPER)
    lock_record(proposal)
    if proposal.state not in _UNDER_REVIEW or not proposal.head_commit:
        raise LoopError(
            _("%(proposal)s is %(state)s: its base can't be moved now")
            % {"proposal": proposal, "state": proposal.get_state_display()}
        )
    with explain_git_errors():
        try:
            return rebasing.rebase_proposal(actor, proposal)
        except MergeConflict as failure:
            files = ", ".join(failure.files)
            raise LoopError(
                _("it and the live version change the same lines of %(files)s; settle that first")
                % {"files": files}
            ) from failure
        except StaleBase as failure:
            raise StaleState(
                _("the branch of %(proposal)s has moved; look at it again") % {"proposal": proposal}
            ) from failure


def send_back(actor: Actor, proposal: Proposal, feedback: str) -> Job:
    """Have the editor draft anew what clashes: on what is live now where that has moved, else on top of the branch.

    Raises LoopError while the proposal is in a step, or when words are wanted and there are none.
    """
    actor.require(Role.DEVELOPER)
    if proposal.state == ProposalState.IN_STEP:
        raise LoopError(
            _("%(proposal)s is in %(step)s; take it out of the step first")
            % {"proposal": proposal, "step": proposal.step}
        )
    if open_repository(proposal.harness).resolve(MAIN) == proposal.base_commit:
        return amend_proposal(actor, proposal, feedback)
    return redraft_proposal(actor, proposal, feedback)
