"""The flags of proposals' diffs with their words for people."""

from collections.abc import Iterable
from dataclasses import dataclass

from evolution.loop.flags import Flag
from evolution.loop.proposal_flags import flag_proposal
from evolution.models import Proposal
from harness_repo.git.errors import HarnessRepoError
from workbench.flag_names import FlagView, name_flag


@dataclass(frozen=True)
class FlagAtLine:
    """A flag and what people are told of it."""

    flag: Flag
    view: FlagView


def list_flags(proposal: Proposal) -> list[FlagAtLine]:
    """What a reviewer of the newest diff must not overlook, dangers first; none when git has it no longer."""
    try:
        flags = flag_proposal(proposal)
    except HarnessRepoError:
        return []
    found = [FlagAtLine(flag, name_flag(flag)) for flag in flags]
    return sorted(found, key=lambda one: one.view.level != "danger")


def count_flags(proposals: Iterable[Proposal]) -> dict[int, int]:
    """How many flags each proposal has, as counted when its branch last moved."""
    return {proposal.pk: _count(proposal) for proposal in proposals}


def _count(proposal: Proposal) -> int:
    counted = proposal.manifest.get("flags")
    return int(counted.get("total") or 0) if isinstance(counted, dict) else 0
