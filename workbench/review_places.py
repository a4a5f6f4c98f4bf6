"""Where on the page of a proposal its flags and threads are: beside a row of the diff, or nowhere in it."""

from dataclasses import dataclass, field

from evolution.queries.reviews import SpokenThread
from workbench.diff_page import DiffPage
from workbench.diff_view.files import list_rows
from workbench.review_flags import FlagAtLine
from workbench.review_notes import ReviewNotes


@dataclass(frozen=True)
class LinkedFlag:
    """A flag and the id of its row; empty when the row is not on the page."""

    found: FlagAtLine
    anchor: str


@dataclass
class Located:
    """The notes of a proposal by whether the page shows them beside their lines."""

    flags: list[LinkedFlag] = field(default_factory=list)
    # beside a row
    shown: list[SpokenThread] = field(default_factory=list)
    # of lines that are folded, or of files that are not shown at once, or not changed any more
    elsewhere: list[SpokenThread] = field(default_factory=list)


def locate_notes(notes: ReviewNotes, diff: DiffPage | None) -> Located:
    """Sort the notes; flags stay in their order."""
    anchors = _read_anchors(diff) if diff else {}
    located = Located()
    at = {id(flag): anchors.get(id(place), "") for place in notes.places.values() for flag in place.flags}
    located.flags = [LinkedFlag(flag, at.get(id(flag), "")) for flag in notes.flags]
    for place in notes.places.values():
        is_shown = id(place) in anchors
        (located.shown if is_shown else located.elsewhere).extend(place.threads)
    return located


def _read_anchors(diff: DiffPage) -> dict[int, str]:
    """By the identity of the notes that hang there."""
    found: dict[int, str] = {}
    for view in diff.files:
        for notes in view.notes:
            found.setdefault(id(notes), view.anchor)
        for row in list_rows(view):
            for notes in row.notes:
                found.setdefault(id(notes), row.anchor)
    return found
