"""Beside the steps: proposals that repeat one another, so that nobody measures the same twice or merges nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from evolution.loop.diff_digests import diff_digest
from evolution.loop.repositories import open_repository
from evolution.models import Proposal
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import HarnessRepository

# A hash of each is kept.
_MOST_KEPT = 4_096


class Likeness(StrEnum):
    """What a proposal repeats of another."""

    # what is changed is the same to the letter
    CHANGE = "change"
    # a rule that it adds is one of the other's, word for word
    RULE = "rule"


@dataclass(frozen=True)
class Repeat:
    """A proposal that repeats `other`, which is an older one."""

    proposal: int
    other: int
    likeness: Likeness
    # the rule, for RULE
    rule: str = ""


def find_repeats(proposals: Sequence[Proposal]) -> dict[int, Repeat]:
    """By id, the proposals that repeat an older one of these, each with the oldest that it repeats the most of."""
    found: dict[int, Repeat] = {}
    ordered = sorted(proposals, key=lambda proposal: proposal.pk)
    for place, proposal in enumerate(ordered):
        repeats = [repeat for older in ordered[:place] if (repeat := compare(proposal, older))]
        if repeats:
            found[proposal.pk] = min(repeats, key=lambda repeat: repeat.likeness != Likeness.CHANGE)
    return found


def compare(proposal: Proposal, other: Proposal) -> Repeat | None:
    """What a proposal repeats of another; None where it repeats nothing, and where git can't say."""
    mine = _digest(proposal)
    if mine and mine == _digest(other):
        return Repeat(proposal.pk, other.pk, Likeness.CHANGE)
    theirs = set(_list_added(other))
    rule = next((text for text in _list_added(proposal) if text in theirs), "")
    return Repeat(proposal.pk, other.pk, Likeness.RULE, rule) if rule else None


def _list_added(proposal: Proposal) -> list[str]:
    """The rules that the manifest says are new, without their white space at the ends."""
    added = proposal.manifest.get("rules", {}).get("added", [])
    return [text for rule in added if (text := str(rule.get("text", "")).strip())]


def _digest(proposal: Proposal) -> str:
    if not proposal.base_commit or not proposal.head_commit:
        return ""
    try:
        path = open_repository(proposal.harness).path
        return _read_digest(path, proposal.base_commit, proposal.head_commit)
    except (HarnessRepoError, ValueError):
        return ""


@lru_cache(maxsize=_MOST_KEPT)
def _read_digest(repository: Path, base: str, head: str) -> str:
    """Commits are what they are, so this is read once per process."""
    return diff_digest(HarnessRepository(repository), base, head)
