"""A conflict as people see it: the lines that clash with those around them, and what to put in their place."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff

from evolution.loop.conflict_resolutions import Side
from evolution.loop.edits import LARGEST
from evolution.models import ConflictResolution
from evolution.queries.steps import Recalled
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.markedfile import Clash
from workbench.settled_view import SettledView
from workbench.text_marks import has_hidden

# Settled lines that are shown before and after each place; the others are folded.
AROUND = 3


@dataclass(frozen=True)
class Lines:
    """Settled lines between two places in conflict."""

    first: list[str]
    folded: list[str]
    last: list[str]


@dataclass(frozen=True)
class Place:
    """One place in conflict; `number` counts from 1."""

    number: int
    line: int
    base: list[str]
    ours: list[str]
    theirs: list[str]
    # what is chosen and typed so far
    chosen: str
    own: str

    @property
    def has_same(self) -> bool:
        """Whether a side has lines of the base that it did not change."""
        return not set(self.base).isdisjoint((*self.ours, *self.theirs))


@dataclass(frozen=True)
class ConflictView:
    """One file in conflict."""

    path: str
    kind: str
    key: str
    parts: list[Lines | Place]
    # all of it is text, and not too much of it
    can_settle: bool
    has_ours: bool
    has_theirs: bool
    # what the two sides are called
    ours_name: str
    theirs_name: str
    # the whole file, to be written by hand
    text: str
    # characters in it that a text field does not show
    has_hidden: bool
    # what the side that keeps the file changed in it, where the other removed it: " ", "+" or "-", and the line
    changes: list[tuple[str, str]]
    reason: str
    resolution: ConflictResolution | None = None
    settled: SettledView | None = None
    # whose earlier decision is proposed where a place was found again
    recalled_by: str = ""
    # at some place that text lacks lines that are new on a side
    drops_lines: bool = False

    @property
    def places(self) -> int:
        """How many places are in conflict."""
        return sum(isinstance(part, Place) for part in self.parts)


def view_conflict(
    conflict: FileConflict,
    names: tuple[str, str],
    settled: SettledView | None = None,
    typed: Mapping[str, str] | None = None,
    recalled: Recalled | None = None,
) -> ConflictView:
    """Show a conflict; `names` are those of ours and theirs, `typed` is what was sent and could not be taken."""
    resolution = settled.resolution if settled else None
    sent = typed or _propose(recalled)
    text = sent.get("text") or _write_whole(conflict, resolution)
    return ConflictView(
        path=conflict.path,
        kind=conflict.kind,
        key=conflict.key,
        parts=_view_parts(conflict, sent),
        can_settle=conflict.sides.is_text and _size(conflict) <= 2 * LARGEST,
        has_ours=conflict.sides.ours is not None,
        has_theirs=conflict.sides.theirs is not None,
        ours_name=names[0],
        theirs_name=names[1],
        text=text,
        has_hidden=has_hidden(text),
        changes=[] if conflict.parts else _list_changes(conflict),
        reason=sent.get("reason", ""),
        resolution=resolution,
        settled=settled,
        recalled_by=recalled.by if recalled and not typed else "",
        drops_lines=bool(recalled and recalled.incomplete and not typed),
    )


def _propose(recalled: Recalled | None) -> dict[str, str]:
    """As a form would send what was decided before; chosen only where that drops nothing that a side has new."""
    if recalled is None:
        return {}
    places = recalled.places
    chosen = {f"choice-{number}": Side.OWN.value for number in places if number not in recalled.incomplete}
    return chosen | {f"own-{number}": text for number, text in places.items()}


def _list_changes(conflict: FileConflict) -> list[tuple[str, str]]:
    sides = conflict.sides
    if sides.base is None or (sides.ours is None) == (sides.theirs is None):
        return []
    kept = sides.ours if sides.theirs is None else sides.theirs
    lines = unified_diff(_lines(sides.base), _lines(kept or b""), lineterm="", n=AROUND)
    # The first two name the files.
    return [(line[:1], line[1:]) for line in list(lines)[2:]]


def _size(conflict: FileConflict) -> int:
    return max(len(side or b"") for side in (conflict.sides.ours, conflict.sides.theirs))


def _view_parts(conflict: FileConflict, sent: Mapping[str, str]) -> list[Lines | Place]:
    hunks = iter(conflict.hunks)
    last = len(conflict.parts) - 1
    parts: list[Lines | Place] = []
    number = 0
    for place, part in enumerate(conflict.parts):
        if isinstance(part, Clash):
            number += 1
            parts.append(_view_place(part, number, next(hunks).line, sent))
        else:
            parts.append(_view_lines(_lines(part), is_first=place == 0, is_last=place == last))
    return parts


def _view_place(clash: Clash, number: int, line: int, sent: Mapping[str, str]) -> Place:
    both = _text(clash.ours + clash.theirs)
    return Place(
        number,
        line,
        _lines(clash.base),
        _lines(clash.ours),
        _lines(clash.theirs),
        chosen=sent.get(f"choice-{number}", ""),
        own=sent.get(f"own-{number}", both),
    )


def _view_lines(lines: list[str], *, is_first: bool, is_last: bool) -> Lines:
    """At the ends of the file only what is next to a conflict is shown."""
    before = [] if is_first else lines[:AROUND]
    rest = lines[len(before) :]
    after = [] if is_last else rest[-AROUND:]
    return Lines(before, rest[: len(rest) - len(after)], after)


def _write_whole(conflict: FileConflict, resolution: ConflictResolution | None) -> str:
    """What a person starts from who writes the file by hand: as it was settled, or with both sides of each place."""
    if resolution is not None and resolution.content is not None:
        return resolution.content
    if not conflict.parts:
        return _text(conflict.sides.ours or conflict.sides.theirs or b"")
    return "".join(
        _text(part.ours + part.theirs if isinstance(part, Clash) else part) for part in conflict.parts
    )


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _lines(data: bytes) -> list[str]:
    lines = _text(data).split("\n")
    return lines[:-1] if lines[-1] == "" else lines


SIDES = tuple(side.value for side in Side)
