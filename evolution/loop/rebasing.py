"""Beside the steps: a proposal's branch takes in what is live now, and its base moves there; its history stays.

The merge commit is built first, then the record moves, then the branch: whoever repeats what died in between finds
the branch where it belongs, and takes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor, Role
from evolution.errors import StaleState
from evolution.loop.authors import CO_AUTHOR, author_of, sign_as_co_author
from evolution.loop.conflict_resolutions import known_resolutions
from evolution.loop.proposals import branch_head, rebuild_manifest
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import carry_approvals
from evolution.loop.step_merges import find_base
from evolution.models import Proposal
from evolution.states import ProposalState
from evolution.transitions import change, record
from harness_repo.git.merges import Resolutions
from harness_repo.git.messages import TrailerValue, message_with_trailers, read_trailers
from harness_repo.git.objects import Author
from harness_repo.git.repository import MAIN, HarnessRepository


@dataclass(frozen=True)
class BuiltRebase:
    """A rebase whose commit is made; neither record nor branch has moved."""

    proposal: Proposal
    onto: str
    commit: str
    # where the branch is now, None where there is none
    branch_at: str | None


@dataclass(frozen=True)
class Rebased:
    """A proposal on its new base."""

    proposal: Proposal
    commit: str
    base: str
    # its diff is the same to the letter, so that its approvals still hold
    is_kept: bool


def rebase_proposal(actor: Actor, proposal: Proposal, resolutions: Resolutions | None = None) -> Rebased:
    """Put a locked proposal on what is live now; on it already, nothing happens. Needs a transaction.

    Raises MergeConflict where a conflict is open, StaleState when the branch moved, LoopError when main is no
    release; then nothing has moved.
    """
    onto = find_base(proposal.harness)
    built = build_rebase(actor, proposal, onto, resolutions)
    if built is None:
        return Rebased(proposal, proposal.head_commit, onto, is_kept=True)
    rebased = record_rebase(actor, built)
    move_branches([built])
    return rebased


def build_rebase(
    actor: Actor, proposal: Proposal, onto: str, resolutions: Resolutions | None = None
) -> BuiltRebase | None:
    """Make the commit that puts a proposal on `onto`; None when that is its base. Errors as rebase_proposal."""
    if proposal.base_commit == onto:
        return None
    repository = open_repository(proposal.harness)
    known = known_resolutions(proposal.harness, [proposal]) if resolutions is None else resolutions
    at = branch_head(repository, proposal)
    start = at or proposal.head_commit
    if start != proposal.head_commit and not find_unrecorded_rebase(repository, proposal, start):
        raise _moved(proposal)
    if repository.is_ancestor(onto, start):
        return BuiltRebase(proposal, onto, start, at)
    settled = repository.check_merge(onto, [start], resolutions=known).settled
    authors = _find_authors(actor, proposal, [conflict.key for conflict in settled])
    commit = repository.build_rebase(
        start,
        onto,
        author=authors[0],
        message=_message(proposal, onto, [conflict.path for conflict in settled], authors[1:]),
        resolutions=known,
    )
    return BuiltRebase(proposal, onto, commit, at)


def record_rebase(actor: Actor, built: BuiltRebase) -> Rebased:
    """Move the record of a locked proposal; its approvals are kept where the diff is the same."""
    proposal = built.proposal
    old_base, old_head = proposal.base_commit, proposal.head_commit
    change(proposal, base_commit=built.onto, head_commit=built.commit)
    proposal.manifest = rebuild_manifest(proposal, built.commit)
    proposal.save(update_fields=["manifest", "updated_at"])
    is_kept = carry_approvals(actor, proposal, old_base, old_head)
    record(
        actor,
        "proposal.rebased",
        proposal,
        base=built.onto,
        commit=built.commit,
        old_base=old_base,
        old_commit=old_head,
        same_diff=is_kept,
    )
    return Rebased(proposal, built.commit, built.onto, is_kept)


def move_branches(rebases: Sequence[BuiltRebase]) -> None:
    """Put the branches where their records are; StaleBase when one has moved since."""
    for built in rebases:
        if built.proposal.branch and built.branch_at != built.commit:
            repository = open_repository(built.proposal.harness)
            repository.move_branch(built.proposal.branch, built.commit, expected_head=built.branch_at)


def _moved(proposal: Proposal) -> StaleState:
    text = _("the branch of %(proposal)s has moved; look at it again")
    if proposal.state == ProposalState.IN_STEP:
        # Nobody can look at it there.
        text = _("the branch of %(proposal)s has moved; take it out of the step, then look at it again")
    return StaleState(text % {"proposal": proposal})


def find_unrecorded_rebase(repository: HarnessRepository, proposal: Proposal, head: str) -> str:
    """What a rebase took in that moved the branch to `head` and died before its record was written; empty for others.

    Its files are those that the workbench makes of the two, so that nobody else's words pass for its own.
    """
    newest = repository.log(head, 1)[0]
    is_its = ("Proposal", str(proposal.pk)) in read_trailers(newest.message)
    first, *others = newest.parents or ("",)
    takes_main_in = len(others) == 1 and repository.is_ancestor(others[0], MAIN)
    if not (is_its and first == proposal.head_commit and takes_main_in):
        return ""
    known = known_resolutions(proposal.harness, [proposal])
    check = repository.check_merge(others[0], [first], resolutions=known, rebasing=True)
    return others[0] if check.is_clean and check.tree == repository.tree_of(head) else ""


def _find_authors(actor: Actor, proposal: Proposal, keys: Sequence[str]) -> list[Author]:
    """Who wrote what is new in the commit: who settled the conflicts; where nobody had to, nobody did."""
    settled = proposal.harness.resolutions.filter(key__in=keys).values_list("decided_by", flat=True)
    # The newest first, each once.
    names = dict.fromkeys(settled)
    found = [author_of(actor if name == actor.name else Actor(name, Role.VIEWER)) for name in names]
    return found or [author_of(SYSTEM)]


def _message(proposal: Proposal, onto: str, paths: Sequence[str], others: Sequence[Author]) -> str:
    subject = f"Take in {MAIN} at {onto[:12]}"
    text = "\n".join([f"{subject}\n\nConflicts settled:", *(f"- {path}" for path in paths)])
    trailers: dict[str, TrailerValue] = {
        CO_AUTHOR: [sign_as_co_author(author) for author in others],
        "Proposal": proposal.pk,
    }
    return message_with_trailers(text if paths else subject, trailers)
