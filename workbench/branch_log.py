"""The commits of a proposal's branch, and the part of them that a reviewer wants to see the changes of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evolution.loop.repositories import open_repository
from evolution.loop.reviews import list_drafts
from evolution.models import Proposal
from harness_repo.git.commitinfo import CommitInfo
from harness_repo.git.errors import HarnessRepoError


@dataclass(frozen=True)
class BranchCommit:
    """One commit with what it was made on; `before` is empty where that is no part of the branch."""

    info: CommitInfo
    before: str
    # made by the editor, as the audit trail tells it
    is_draft: bool


@dataclass(frozen=True)
class Span:
    """The two versions whose difference is shown."""

    base: str
    head: str
    # less than all that the proposal changes
    is_part: bool = False
    # up to the branch's newest version
    is_newest: bool = True

    @property
    def query(self) -> str:
        """As a part of an address; empty for the whole change."""
        return f"?since={self.base}&until={self.head}" if self.is_part else ""


def list_commits(proposal: Proposal) -> list[BranchCommit]:
    """The branch's commits since its base, newest first; none when git has them no longer."""
    if not proposal.head_commit:
        return []
    try:
        found = open_repository(proposal.harness).log_between(proposal.base_commit, proposal.head_commit)
    except HarnessRepoError:
        return []
    known = {proposal.base_commit, *(commit.sha for commit in found)}
    drafts = list_drafts(proposal)
    return [
        BranchCommit(
            commit,
            next((parent for parent in commit.parents[:1] if parent in known), ""),
            commit.sha in drafts,
        )
        for commit in found
    ]


def count_since_draft(commits: Sequence[BranchCommit]) -> int:
    """How many commits came after the newest draft; 0 when none of them is one."""
    return next((number for number, commit in enumerate(commits) if commit.is_draft), 0)


def read_span(proposal: Proposal, commits: Sequence[BranchCommit], query: Mapping[str, str]) -> Span:
    """From ?since= to ?until=; the whole change where they are missing or no versions of the branch."""
    known = {proposal.base_commit, *(commit.info.sha for commit in commits)}
    since, until = query.get("since", ""), query.get("until", "")
    base = since if since in known else proposal.base_commit
    head = until if until in known else proposal.head_commit
    whole = base == proposal.base_commit and head == proposal.head_commit
    return Span(base, head, is_part=not whole, is_newest=head == proposal.head_commit)
