"""Beside the steps: whether a second person has looked at all that a step would release, where the harness asks for it.

What was built before the harness asked for it, or while people had other roles, is looked at again.
"""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from evolution.loop.conflict_resolutions import known_resolutions
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import is_approved
from evolution.models import Proposal, Step


def find_unreviewed(step: Step) -> str:
    """Which second word a step lacks and how to get it; empty where it lacks none. HarnessRepoError.

    Of each proposal that it was made of, and of each conflict that somebody settled in it.
    """
    if not step.harness.needs_second_reviewer:
        return ""
    proposals = list(step.merged.select_related("harness", "diagnosis").order_by("pk"))
    return _find_unapproved(proposals) or _find_unconfirmed(step, proposals)


def _find_unapproved(proposals: Sequence[Proposal]) -> str:
    lacking = [f"#{proposal.pk}" for proposal in proposals if not is_approved(proposal)]
    if not lacking:
        return ""
    text = _(
        "%(proposals)s has no approval of a developer who is not its author: take it out of the step, or send the step "
        "back for revision, have it approved, and put it in again"
    )
    return text % {"proposals": ", ".join(lacking)}


def _find_unconfirmed(step: Step, proposals: Sequence[Proposal]) -> str:
    """Whatever was settled has to be what is settled and confirmed now."""
    repository = open_repository(step.harness)
    check = repository.check_merge(
        step.base_commit,
        [proposal.head_commit for proposal in proposals],
        resolutions=known_resolutions(step.harness, proposals),
    )
    if check.head is not None:
        text = _(
            "nobody but who settled it has confirmed how %(paths)s was settled: have it confirmed on the page of the "
            "conflicts, by a developer who wrote none of it"
        )
        return text % {"paths": ", ".join(sorted({file.path for file in check.conflicts}))}
    if check.settled and check.tree != repository.tree_of(step.candidate_commit):
        return _(
            "a conflict was settled otherwise since the step was put together: rebuild it and evaluate it again"
        )
    return ""
