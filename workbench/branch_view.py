"""A proposal's branch as its page shows it: changes from outside, the remote, and what has to be decided."""

from dataclasses import dataclass, field

from evolution.adapters.remotes import read_remote
from evolution.errors import LoopError
from evolution.loop.forges import compare_link
from evolution.loop.outside import FOLLOWED, PUSHABLE, Here, Standing, There, read_standing
from evolution.loop.repositories import open_repository
from evolution.loop.version_faults import list_version_faults
from evolution.models import Job, Proposal
from evolution.queries.clusters import is_running, latest_job
from evolution.states import JobKind, JobState
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.names import check_ref_name
from harness_repo.git.remotes import Remote, remote_branch
from harness_repo.git.repository import MAIN


@dataclass(frozen=True)
class BranchView:
    """What parts/branch.html shows."""

    standing: Standing
    # why there is no remote to speak of; empty with one
    without: str = ""
    # the remote's branch that is our main
    target: str = MAIN
    # where the forge begins a pull request; empty for one that is not known
    link: str = ""
    # whoever made the newest commit from outside that nobody has looked at
    outside_by: str = ""
    # what stands against approving what came from outside
    faults: list[str] = field(default_factory=list)
    # pushes or fetches that are under way, or failed last
    jobs: list[Job] = field(default_factory=list)
    may_push: bool = False
    # whether the branch may move now
    may_choose: bool = False

    @property
    def is_running(self) -> bool:
        """Whether a push or a fetch has yet to end."""
        return any(is_running(job) for job in self.jobs)

    @property
    def may_take(self) -> bool:
        """Whether there is another history that could count."""
        return self.standing.here not in {Here.DELETED, Here.POINTER} and not self.standing.refused


def view_branch(proposal: Proposal) -> BranchView | None:
    """What is to be said of the branch; None before there is one, or when git can't be read."""
    if not proposal.branch or not proposal.head_commit:
        return None
    remote, without = _find_remote(proposal)
    try:
        return _view(proposal, remote, without)
    except HarnessRepoError:
        return None


def _view(proposal: Proposal, remote: Remote | None, without: str) -> BranchView:
    repository = open_repository(proposal.harness)
    target = remote_branch(repository, remote) if remote else MAIN
    standing = read_standing(proposal, remote.name if remote else "", target)
    outside = proposal.outside_commit
    return BranchView(
        standing=standing,
        without=without,
        target=target,
        link=compare_link(remote.address, target, check_ref_name(proposal.branch)) if remote else "",
        outside_by=(repository.log(outside, 1)[0].author or "?") if outside else "",
        faults=list_version_faults(proposal) if outside else [],
        jobs=_list_jobs(proposal) if remote else [],
        may_push=remote is not None
        and proposal.state in PUSHABLE
        and standing.there not in {There.SAME, There.DIVERGED, There.AHEAD, There.MERGED},
        may_choose=proposal.state in FOLLOWED,
    )


def _find_remote(proposal: Proposal) -> tuple[Remote | None, str]:
    try:
        return read_remote(proposal.harness), ""
    except LoopError as error:
        return None, str(error)


def _list_jobs(proposal: Proposal) -> list[Job]:
    """The last push and the last fetch, as far as they are news."""
    found = (
        latest_job(proposal.harness, JobKind.PUSH, proposal.pk),
        latest_job(proposal.harness, JobKind.FETCH),
    )
    return [job for job in found if job is not None and job.state != JobState.DONE]
