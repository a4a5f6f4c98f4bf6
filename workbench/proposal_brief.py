"""What stands above a proposal's diff: a line for each thing, and nothing that is said elsewhere on the page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from evolution.models import Proposal
from evolution.queries.diagnoses import list_twins
from evolution.queries.predictions import DrafterHistory, PredictionView
from evolution.queries.proposals import list_repeats
from workbench.review_places import LinkedFlag

_SENTENCE_SIGNS = " \t\r\n.:;,。：；，"


@dataclass(frozen=True)
class FlagCount:
    """Flags that say the same."""

    title: str
    level: str
    count: int
    # of the row of the first one; empty when it is not on the page
    anchor: str


def count_by_kind(flags: Sequence[LinkedFlag]) -> list[FlagCount]:
    """The flags by what they say, in their order."""
    counts: dict[str, FlagCount] = {}
    for flag in flags:
        view = flag.found.view
        known = counts.get(view.title)
        if known is None:
            counts[view.title] = FlagCount(view.title, view.level, 1, flag.anchor)
        else:
            counts[view.title] = replace(known, count=known.count + 1, anchor=known.anchor or flag.anchor)
    return list(counts.values())


def leave_out(text: str, said: str) -> str:
    """The text without a passage that was said already, however the two are broken into lines."""
    words = said.split()
    if not words:
        return text.strip()
    passage = r"\s+".join(re.escape(word) for word in words)
    found = re.search(passage, text)
    if found is None:
        return text.strip()
    before, after = text[: found.start()].strip(), text[found.end() :].lstrip(_SENTENCE_SIGNS)
    return f"{before}\n\n{after}".strip()


def describe_brief(
    proposal: Proposal, flags: Sequence[LinkedFlag], history: DrafterHistory | None
) -> dict[str, object]:
    """For parts/brief.html, beside what its parts need."""
    hypothesis = proposal.diagnosis.hypothesis if proposal.diagnosis else ""
    twins = list_twins(proposal.diagnosis) if proposal.diagnosis else []
    return {
        "rest_of_summary": leave_out(proposal.summary, hypothesis),
        "flag_kinds": count_by_kind(flags),
        "fixes_so_far": _find_fixes(history),
        "twins": twins,
        "repeats": [found for found in list_repeats(proposal) if found[0] not in twins],
    }


def _find_fixes(history: DrafterHistory | None) -> PredictionView | None:
    rows = history.rows if history else []
    return next((row for row in rows if row.name == "fixes" and row.precision.value is not None), None)
