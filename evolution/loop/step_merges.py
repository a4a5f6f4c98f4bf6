"""Inside the steps: what putting confirmed proposals together gives, or why they can't be. Known resolutions count."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.authors import author_of
from evolution.loop.conflict_resolutions import known_resolutions
from evolution.loop.lineage import find_unreleased_main
from evolution.loop.merged_problems import check_merged
from evolution.loop.repositories import open_repository
from evolution.models import Harness, Proposal
from evolution.states import ProposalState
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.errors import HarnessRepoError, MergeConflict, NothingToCommit, RepoBusy, StaleBase
from harness_repo.git.messages import message_with_trailers
from harness_repo.git.repository import MAIN


@dataclass(frozen=True)
class StepConflict:
    """Why confirmed proposals cannot be put together as they are."""

    # The first one that does not fit to what is live and those before it.
    proposal: Proposal
    # None of them when it does not fit to what is live, whatever else is in the step.
    before: tuple[Proposal, ...]
    files: tuple[FileConflict, ...]


@dataclass(frozen=True)
class MergePreview:
    """What merging proposals on what is live would bring; nothing is written for it."""

    # None: they can be put together
    conflict: StepConflict | None
    # the conflicts that people settled before
    settled: tuple[FileConflict, ...]
    # id of the merged files' tree, empty where there is a conflict
    tree: str


@contextlib.contextmanager
def explain_git_errors() -> Iterator[None]:
    """Turn what the repository refuses into errors that people can act on."""
    try:
        yield
    except MergeConflict as failure:
        files = ", ".join(failure.files)
        raise LoopError(
            _("these proposals change the same lines of %(files)s; settle that, or take one of them out")
            % {"files": files}
        ) from failure
    except NothingToCommit as failure:
        raise LoopError(_("what is live has these files already")) from failure
    except StaleBase as failure:
        raise LoopError(_("main moved since; rebuild the step on what is live now")) from failure
    except RepoBusy as failure:
        raise LoopError(_("the repository is busy; try again")) from failure
    except HarnessRepoError as failure:
        raise LoopError(str(failure)) from failure


def preview_merge(harness: Harness, proposals: Sequence[Proposal]) -> MergePreview:
    """What putting the proposals together on what is live gives. HarnessRepoError when a branch can't be read.

    Where they are in a step that what is live has left behind, each is put on that first, as the rebuild does.
    """
    repository = open_repository(harness)
    live = repository.resolve(MAIN)
    heads = [proposal.head_commit for proposal in proposals]
    check = repository.check_merge(
        live,
        heads,
        resolutions=known_resolutions(harness, proposals),
        rebasing=any(_is_left_behind(proposal, live) for proposal in proposals),
    )
    if check.head is None:
        return MergePreview(None, check.settled, check.tree)
    place = heads.index(check.head)
    before = () if check.is_alone else tuple(proposals[:place])
    return MergePreview(StepConflict(proposals[place], before, check.conflicts), check.settled, "")


def _is_left_behind(proposal: Proposal, live: str) -> bool:
    step = proposal.step
    return proposal.state == ProposalState.IN_STEP and step is not None and step.base_commit != live


def find_conflict(harness: Harness, proposals: Sequence[Proposal]) -> StepConflict | None:
    """What keeps the proposals from being merged on what is live, None when nothing does; writes nothing.

    Raises HarnessRepoError when a branch cannot be read.
    """
    return preview_merge(harness, proposals).conflict


def find_base(harness: Harness) -> str:
    """What is live, to build on; LoopError when no release names it, for that is half of a decision."""
    unreleased = find_unreleased_main(harness)
    if unreleased:
        raise LoopError(
            _(
                "main is at %(commit)s, which no release names: repeat the decision that was cut off, or roll back "
                "to a release"
            )
            % {"commit": unreleased[:12]}
        )
    return open_repository(harness).resolve(MAIN)


def build_step(actor: Actor, harness: Harness, branch: str, base: str, proposals: Sequence[Proposal]) -> str:
    """The commit that a step's branch is to have; the branch has not moved.

    Raises MergeConflict where a conflict is open, NothingToCommit, and LoopError when what fits line by line has
    problems together that no side has.
    """
    repository = open_repository(harness)
    titles = "; ".join(proposal.title or str(proposal) for proposal in proposals)
    merged = repository.build_merge(
        base,
        [proposal.head_commit for proposal in proposals],
        author=author_of(actor),
        message=message_with_trailers(f"{branch}: {titles}", _trailers(proposals)),
        resolutions=known_resolutions(harness, proposals),
    )
    sides = [base, *(proposal.head_commit for proposal in proposals)]
    check_merged([repository.files(side) for side in sides], repository.files(merged))
    return merged


def move_step_branch(harness: Harness, branch: str, commit: str) -> None:
    """Put a step's branch on its merge; it leaves what it had, by an earlier build or a dead attempt."""
    repository = open_repository(harness)
    repository.move_branch(branch, commit, expected_head=repository.branches().get(branch))


def _trailers(proposals: Sequence[Proposal]) -> dict[str, list[int]]:
    """What a step's commit says of where it comes from."""
    clusters = {proposal.diagnosis.cluster.number for proposal in proposals if proposal.diagnosis is not None}
    return {"Proposal": [proposal.pk for proposal in proposals], "Cluster": sorted(clusters)}
