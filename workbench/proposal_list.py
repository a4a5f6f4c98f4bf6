"""The list of proposals as rows that can be put in another order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from evolution.models import Proposal
from evolution.queries.reviews import Summary

# by the field's name in the address; without one, what waits for review comes first
ORDERS = ("age", "changed", "approvals", "threads", "flags", "cluster")


@dataclass(frozen=True)
class ProposalRow:
    """One proposal with what people and programs noticed of it."""

    proposal: Proposal
    summary: Summary
    flags: int
    # the oldest of those listed that asks for the very same change of the same file; None where it is this one
    same_as: int | None = None

    @property
    def cluster_number(self) -> int:
        """0 where no diagnosis is behind it."""
        diagnosis = self.proposal.diagnosis
        return diagnosis.cluster.number if diagnosis else 0


_KEYS: dict[str, Callable[[ProposalRow], Any]] = {
    "age": lambda row: row.proposal.pk,
    "changed": lambda row: -row.proposal.updated_at.timestamp(),
    "approvals": lambda row: -len(row.summary.approved_by),
    "threads": lambda row: -row.summary.open_threads,
    "flags": lambda row: -row.flags,
    "cluster": lambda row: row.cluster_number,
}


def read_order(query: QueryDict) -> str:
    """The order asked for; empty for none that there is."""
    order = query.get("order", "")
    return order if order in ORDERS else ""


def arrange(
    proposals: Sequence[Proposal], summaries: Mapping[int, Summary], flags: Mapping[int, int], order: str
) -> list[ProposalRow]:
    """The rows: the oldest, the last changed, or those with most of something first; else as they came."""
    same = _find_same(proposals)
    rows = [
        ProposalRow(
            proposal, summaries.get(proposal.pk, Summary()), flags.get(proposal.pk, 0), same.get(proposal.pk)
        )
        for proposal in proposals
    ]
    return sorted(rows, key=_KEYS[order]) if order else rows


def _find_same(proposals: Sequence[Proposal]) -> dict[int, int]:
    """Of proposals that are drafts of the same words for the same file, each but the oldest: to the oldest."""
    oldest: dict[tuple[str, ...], int] = {}
    same: dict[int, int] = {}
    for proposal in sorted(proposals, key=lambda each: each.pk):
        diagnosis = proposal.diagnosis
        if diagnosis is None or not diagnosis.path or not diagnosis.changes:
            continue
        first = oldest.setdefault((diagnosis.path, *map(str, diagnosis.changes)), proposal.pk)
        if first != proposal.pk:
            same[proposal.pk] = first
    return same
