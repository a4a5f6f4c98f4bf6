"""The two halves of the dev split: what the drafter of a step may be shown, and what it is measured on unseen.

Every step has a division of its own, so that each case is unseen half of the time. A case's half follows from its key
alone: cases that are added to the dataset move nobody else. What was shown to a proposal's drafter in an earlier round
goes into the held-in half of whatever step takes it.
"""

import hashlib
from collections.abc import Iterable

from django.db.models import Max

from evolution.models import FailureCase, Harness, Proposal
from evolution.states import Split


def coming_round(harness: Harness) -> int:
    """Number of the step that what is diagnosed and drafted now can go into first."""
    newest: int | None = harness.steps.aggregate(newest=Max("number"))["newest"]
    return (newest or 0) + 1


def is_held_in(number: int, key: str) -> bool:
    """Whether the drafter of a harness's step `number` may be shown the dev case with this key."""
    digest = hashlib.sha256(f"{number}/{key}".encode()).digest()
    return digest[0] % 2 == 0


def is_shown_to_drafters(case: FailureCase, number: int) -> bool:
    """Whether diagnoser and editor of step `number` may see a failure: its dataset case, if any, is held in."""
    known = case.dataset_case
    if known is None:
        return True
    return known.split == Split.DEV and is_held_in(number, known.key)


def list_held_in(number: int, keys: Iterable[str], proposals: Iterable[Proposal]) -> list[str]:
    """The dev cases' keys that are held in for a step: by its division, or because a drafter was shown them."""
    shown = {key for proposal in proposals for key in proposal.shown_keys}
    return sorted(key for key in set(keys) if key in shown or is_held_in(number, key))
