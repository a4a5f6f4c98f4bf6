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
    """Put branches and tags on the remote, by default main and the tags of all releases.

    Each is a name, or `NAME:NAME_THERE`; main goes to the branch that HARNESS_REMOTES names. Returns them, with the
    name there where it differs. LoopError when the remote has other work there, or can't be reached; then nothing is
    pushed.
    """
    actor.require(Role.OPERATOR)
    remote = read_remote(harness)
    tags = harness.releases.order_by("number").values_list("tag", flat=True)
    names = list(refs) or [MAIN, *tags]
    with explain_git_errors():
        try:
            pushed = push_remote(open_repository(harness), remote, names)
        except StaleBase as failure:
            text = _(
                "%(remote)s has other work there, so nothing was pushed. Take it first (sync_harness %(harness)s "
                "--advance). If main has moved on as well, push it under another name (sync_harness %(harness)s "
                "--push main:workbench), merge that branch in the team's repository, then advance"
            )
            raise LoopError(text % {"remote": remote.name, "harness": harness.name}) from failure
    record(actor, "harness.pushed", harness, remote=remote.name, refs=pushed)
    return pushed


def advance_harness(actor: Actor, harness: Harness) -> Release | None:
    """Make what was fetched of the remote's branch live, as a release; None when it is live already."""
    actor.require(Role.OPERATOR)
    return promotion.take_remote(actor, harness, read_remote(harness))


def pack_harness(actor: Actor, harness: Harness) -> None:
    """Pack the harness's repository, and remove what nothing has led to for long. LoopError when that fails."""
    actor.require(Role.OPERATOR)
    with explain_git_errors():
        open_repository(harness).collect_garbage()
    record(actor, "harness.packed", harness)
