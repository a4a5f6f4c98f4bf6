"""Beside the steps: what a step's candidate was made of before it was built anew; the audit trail knows.

So what was measured of an earlier build is found again, and the same set put together again is the same version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evolution.loop.repositories import open_repository
from evolution.models import Event, Proposal, Step
from harness_repo.git.errors import HarnessRepoError

_BUILT = ("step.created", "step.rebuilt")


@dataclass(frozen=True)
class Build:
    """One merge that a step's branch had."""

    commit: str
    base: str
    # head of each proposal in it, by the proposal's id
    heads: dict[int, str]


def describe_build(commit: str, proposals: Sequence[Proposal]) -> dict[str, Any]:
    """A build as the event tells it that records it, beside `base`."""
    heads = {str(proposal.pk): proposal.head_commit for proposal in proposals}
    return {"candidate": commit, "heads": heads, "proposals": [proposal.pk for proposal in proposals]}


def list_builds(step: Step) -> list[Build]:
    """All builds of a step, oldest first, each once; those that were made before builds were recorded are left out."""
    events = Event.objects.filter(target_kind="step", target_id=step.pk, verb__in=_BUILT).order_by("pk")
    known: dict[str, Build] = {}
    for data in events.values_list("data", flat=True):
        if commit := str(data.get("candidate") or ""):
            heads = {int(pk): str(head) for pk, head in data["heads"].items()}
            known[commit] = Build(commit, str(data["base"]), heads)
    return list(known.values())


def take_earlier(step: Step, base: str, merged: str, proposals: Sequence[Proposal]) -> str:
    """The commit of an earlier build of the same heads on the same base with the same files; else `merged`."""
    repository = open_repository(step.harness)
    heads = {proposal.pk: proposal.head_commit for proposal in proposals}
    for build in reversed(list_builds(step)):
        if (build.base, build.heads) != (base, heads):
            continue
        try:
            if repository.tree_of(build.commit) == repository.tree_of(merged):
                return build.commit
        except HarnessRepoError:
            # git has swept it up
            continue
    return merged
