"""What people settled a conflict with, as it is looked at: what it changes, what to beware of, whose word it lacks."""

from collections.abc import Sequence
from dataclasses import dataclass

from evolution.loop.confirmations import digest_settled, holds, is_barred, list_concerned
from evolution.loop.flags import find_flags
from evolution.loop.reviews import find_authors
from evolution.models import ConflictResolution, Proposal
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.errors import HarnessRepoError
from workbench.diff_view import FileView, line_key, view_diff
from workbench.flag_names import name_flag
from workbench.review_flags import FlagAtLine
from workbench.review_notes import Notes
from workbench.typed_diff import diff_texts

# The files of the page's own diff are numbered before.
_FIRST = 10_001


@dataclass(frozen=True)
class SettledView:
    """One settled conflict."""

    file: FileConflict
    resolution: ConflictResolution
    # from the first side to what was settled; empty where that is the first side as it is
    change: list[FileView]
    flags: list[FlagAtLine]
    # lines that neither side has
    own_lines: int
    # merges do not take it yet
    is_waiting: bool
    # the reader's word would count
    may_confirm: bool
    # whose word would not
    barred: list[str]
    # of the text that is shown
    digest: str


def view_settled(
    settled: Sequence[tuple[FileConflict, ConflictResolution]], proposals: Sequence[Proposal], reader: str
) -> list[SettledView]:
    """Show how conflicts between the proposals were settled, to a reader who may have to confirm it."""
    return [
        _view(file, resolution, proposals, reader, number)
        for number, (file, resolution) in enumerate(settled, _FIRST)
    ]


def _view(
    file: FileConflict,
    resolution: ConflictResolution,
    proposals: Sequence[Proposal],
    reader: str,
    number: int,
) -> SettledView:
    is_waiting = not holds(resolution, proposals)
    flags = _flag(file, resolution)
    return SettledView(
        file=file,
        resolution=resolution,
        change=_view_change(file, resolution, flags, number),
        flags=flags,
        own_lines=_count_own_lines(file, resolution),
        is_waiting=is_waiting,
        may_confirm=is_waiting and not is_barred(reader, resolution, proposals),
        barred=_list_barred(resolution, proposals) if is_waiting else [],
        digest=digest_settled(resolution),
    )


def _flag(file: FileConflict, resolution: ConflictResolution) -> list[FlagAtLine]:
    """Against the first side: what the other brings was flagged with its proposal, and is flagged here again."""
    ours, settled = file.sides.ours, resolution.content
    before = {} if ours is None else {file.path: ours}
    after = {} if settled is None else {file.path: settled.encode()}
    found = [FlagAtLine(flag, name_flag(flag)) for flag in find_flags(before, after)]
    return sorted(found, key=lambda one: one.view.level != "danger")


def _view_change(
    file: FileConflict, resolution: ConflictResolution, flags: Sequence[FlagAtLine], number: int
) -> list[FileView]:
    ours = file.sides.ours
    diff = diff_texts(
        file.path, None if ours is None else ours.decode("utf-8", "replace"), resolution.content
    )
    if diff is None:
        return []
    notes: dict[str, Notes] = {}
    for flag in flags:
        key = line_key(flag.flag.path, flag.flag.side, flag.flag.line)
        notes.setdefault(key, Notes()).flags.append(flag)
    return view_diff([diff], notes=notes, first=number)


def _count_own_lines(file: FileConflict, resolution: ConflictResolution) -> int:
    sides = (file.sides.ours, file.sides.theirs)
    known = {
        line for side in sides if side is not None for line in side.decode("utf-8", "replace").split("\n")
    }
    return sum(line not in known for line in (resolution.content or "").split("\n"))


def _list_barred(resolution: ConflictResolution, proposals: Sequence[Proposal]) -> list[str]:
    """Names only: git's addresses say the same again."""
    names = {resolution.decided_by}
    for proposal in list_concerned(resolution, proposals):
        try:
            names |= {name for name in find_authors(proposal) if "@" not in name}
        except HarnessRepoError:
            continue
    return sorted({name.casefold(): name for name in sorted(names, reverse=True)}.values())
