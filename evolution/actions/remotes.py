"""What operators do with a harness's remote: fetch, push, and make what was fetched live."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.adapters.remotes import read_remote
from evolution.errors import LoopError
from evolution.loop import promotion
from evolution.loop.outside import fetch_branches
from evolution.loop.repositories import open_repository
from evolution.loop.step_merges import explain_git_errors
from evolution.models import Harness, Proposal, Release
from evolution.transitions import record
from harness_repo.git.errors import StaleBase
from harness_repo.git.remotes import push_remote
from harness_repo.git.repository import MAIN


@dataclass(frozen=True)
class Fetched:
    """What the remote has."""

    # branch -> commit
    branches: Mapping[str, str]
    # branch that was left out -> why
    skipped: Mapping[str, str]
    # proposals whose branch somebody has gone on with there
    moved: list[Proposal]


def fetch_harness(actor: Actor, harness: Harness) -> Fetched:
    """Bring what the remote's branches have; of ours only those of proposals go on. LoopError when that fails."""
    actor.require(Role.OPERATOR)
    remote = read_remote(harness)
    return Fetched(*fetch_branches(actor, harness, remote))


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
