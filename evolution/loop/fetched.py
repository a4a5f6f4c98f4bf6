"""What was fetched of a harness's remote, and what to do when it and main have moved apart."""

from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.models import Harness
from harness_repo.git.errors import MissingRef
from harness_repo.git.remotes import Remote, fetched_commit, remote_branch
from harness_repo.git.repository import HarnessRepository


def find_fetched(repository: HarnessRepository, remote: Remote) -> str:
    """The commit that was fetched of the remote's branch; LoopError with the branches that there are."""
    try:
        return fetched_commit(repository, remote)
    except MissingRef as failure:
        text = _("%(reason)s. An operator names the one to take as `branch` in HARNESS_REMOTES")
        raise LoopError(text % {"reason": failure}) from failure


def say_way_out(repository: HarnessRepository, harness: Harness, remote: Remote) -> str:
    """How two that have moved apart are brought together: a push of main as it is would be refused as well."""
    text = _(
        "main has versions that %(branch)s of %(remote)s does not have. Push them under another name "
        "(sync_harness %(harness)s --push main:workbench), merge that branch into %(branch)s in the team's "
        "repository, then advance again"
    )
    branch = remote_branch(repository, remote)
    return text % {"branch": branch, "remote": remote.name, "harness": harness.name}
