"""Drafts as pages show them when two are set side by side: what each took, what it predicts, and its diff."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse

from evolution.loop.repositories import open_repository
from evolution.models import Proposal
from evolution.queries.exchanges import Effort, list_drafting
from evolution.queries.predictions import ManifestView, ScoreView, view_manifest, view_prediction
from evolution.queries.reviews import Summary, summarise
from harness_repo.git.errors import HarnessRepoError
from workbench.diff_page import DiffPage, show_diff
from workbench.review_flags import count_flags

# Files of the second diff are numbered from here on: a page shows fewer of the first.
SECOND = 100_001


@dataclass(frozen=True)
class DraftView:
    """One proposal."""

    proposal: Proposal
    effort: Effort
    manifest: ManifestView | None
    prediction: ScoreView | None
    flags: int
    approved_by: list[str]
    diff: DiffPage | None = None
    # why the diff can't be shown
    problem: str = ""


def view_drafts(request: HttpRequest, proposals: Sequence[Proposal]) -> list[DraftView]:
    """The drafts in their order, each with its diff against its base."""
    flags, summaries = count_flags(proposals), summarise(proposals)
    views = []
    for place, proposal in enumerate(proposals):
        address = reverse("proposal_file", args=[proposal.harness.name, proposal.pk])
        first = SECOND if place else 1
        diff, problem = _read_diff(
            request, proposal, proposal.base_commit, proposal.head_commit, address=address, first=first
        )
        view = DraftView(
            proposal=proposal,
            effort=Effort(list_drafting(proposal)),
            manifest=view_manifest(proposal),
            prediction=view_prediction(proposal),
            flags=flags.get(proposal.pk, 0),
            approved_by=summaries.get(proposal.pk, Summary()).approved_by,
            diff=diff,
            problem=problem,
        )
        views.append(view)
    return views


def view_between(request: HttpRequest, first: Proposal, second: Proposal) -> tuple[DiffPage | None, str]:
    """What the second draft has otherwise than the first; and why that can't be shown."""
    if not first.head_commit or not second.head_commit:
        return None, ""
    return _read_diff(request, first, first.head_commit, second.head_commit)


def _read_diff(
    request: HttpRequest, proposal: Proposal, base: str, head: str, *, address: str = "", first: int = 1
) -> tuple[DiffPage | None, str]:
    if not head:
        return None, ""
    try:
        repository = open_repository(proposal.harness)
        return show_diff(request, repository, base, head, address=address, first=first), ""
    except (HarnessRepoError, ValueError) as error:
        return None, str(error)
