"""Beside stage 5: which dev cases of a step count as shown to its drafters."""

from collections.abc import Iterable

from evolution.errors import LoopError
from evolution.loop.evaluation import newest_version
from evolution.loop.halves import list_held_in
from evolution.models import DatasetVersion, Harness, Proposal
from evolution.states import Split


def list_step_held_in(
    harness: Harness, number: int, proposals: Iterable[Proposal], version: DatasetVersion | None = None
) -> list[str]:
    """The keys of the held-in half of step `number`, among the dev cases of a dataset version: the newest by default.

    Empty when there is no dataset yet.
    """
    try:
        measured = version or newest_version(harness)
    except LoopError:
        return []
    keys = measured.cases.filter(split=Split.DEV).values_list("key", flat=True)
    return list_held_in(number, keys, proposals)
