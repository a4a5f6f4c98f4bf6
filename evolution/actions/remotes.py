"""What operators do with a harness's remote: fetch, push, and make what was fetched live."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.adapters.remotes import read_remote
from evolution.errors import LoopError
from evolution.loop import promotion
from evolution.loop.repositories import open_repository
from evolution.loop.steps import explain_git_errors
from evolution.models import Harness, Release
from evolution.transitions import record
from harness_repo.git.errors import StaleBase
from harness_repo.git.remotes import FetchResult, fetch_remote, push_remote
from harness_repo.git.repository import MAIN


def fetch_harness(actor: Actor, harness: Harness) -> FetchResult:
    """Bring what the remote's branches have; none of ours moves. LoopError when that fails."""
    actor.require(Role.OPERATOR)
    remote = read_remote(harness)
    with explain_git_errors():
        result = fetch_remote(open_repository(harness), remote)
    record(actor, "harness.fetched", harness, remote=remote.name, branches=dict(result.branches))
    return result


def push_harness(actor: Actor, harness: Harness, refs: Sequence[str] = ()) -> list[str]:
    """Put branches and tags on the remote, by default main and the tags of all releases. Returns their names.

    LoopError when the remote has other work there, or cannot be reached; then nothing is pushed.
    """
    actor.require(Role.OPERATOR)
    remote = read_remote(harness)
    tags = harness.releases.order_by("number").values_list("tag", flat=True)
    names = list(refs) or [MAIN, *tags]
    with explain_git_errors():
        try:
            push_remote(open_repository(harness), remote, names)
        except StaleBase as failure:
            raise LoopError(_("%(remote)s has moved on; fetch first") % {"remote": remote.name}) from failure
    record(actor, "harness.pushed", harness, remote=remote.name, refs=names)
    return names


def advance_harness(actor: Actor, harness: Harness) -> Release | None:
    """Make what was fetched of the remote's main live, as a release; None when it is live already."""
    actor.require(Role.OPERATOR)
    return promotion.take_remote(actor, harness, read_remote(harness))
