"""Beside the steps: how people settled the conflicts of files, by the conflict's key; merges take it from there.

A resolution holds wherever the same three versions of a file meet again, whichever side is ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.confirmations import holds
from evolution.loop.edits import LARGEST
from evolution.loop.merged_problems import check_merged
from evolution.loop.repositories import open_repository
from evolution.models import ConflictResolution, Harness, Proposal
from evolution.transitions import record
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.markedfile import Clash, split_lines
from harness_repo.git.repository import MAIN

LONGEST_PATH = 300
# Lines by which a place is found again in a file that was settled before.
_NEAR = 2
_MOST_EARLIER = 5


class Side(StrEnum):
    """What becomes of one run of lines that both sides changed."""

    OURS = "ours"
    THEIRS = "theirs"
    OURS_FIRST = "ours_theirs"
    THEIRS_FIRST = "theirs_ours"
    OWN = "own"


@dataclass(frozen=True)
class HunkChoice:
    """A person's choice for one hunk; `text` is theirs where the side is OWN."""

    side: Side
    text: str = ""


class KnownResolutions(Mapping[str, bytes | None]):
    """The contents that a harness's conflicts were settled with, by key; read when asked for.

    What waits for somebody else's word is not among them: see `confirmations`.
    """

    def __init__(self, harness: Harness, proposals: Sequence[Proposal]) -> None:
        self._rows = ConflictResolution.objects.filter(harness=harness).select_related("harness")
        self._proposals = proposals

    def __getitem__(self, key: str) -> bytes | None:
        """The file's content, None where it is deleted; KeyError when nobody has settled it, or it must wait."""
        row = self._rows.filter(key=key).first()
        if row is None or not holds(row, self._proposals):
            raise KeyError(key)
        return None if row.content is None else row.content.encode()

    def __iter__(self) -> Iterator[str]:
        """The keys."""
        return (row.key for row in self._rows if holds(row, self._proposals))

    def __len__(self) -> int:
        """How many there are."""
        return sum(1 for _key in self)


def known_resolutions(harness: Harness, proposals: Sequence[Proposal]) -> KnownResolutions:
    """What people settled so far and holds for merging these proposals; for `merge` and `check_merge`."""
    return KnownResolutions(harness, proposals)


def list_resolutions(
    harness: Harness, conflicts: Sequence[FileConflict]
) -> list[tuple[FileConflict, ConflictResolution]]:
    """The conflicts of these that somebody has settled, each with how."""
    keys = [conflict.key for conflict in conflicts]
    found = {row.key: row for row in ConflictResolution.objects.filter(harness=harness, key__in=keys)}
    return [(conflict, found[conflict.key]) for conflict in conflicts if conflict.key in found]


def recall_places(conflict: FileConflict, settled: bytes) -> list[bytes | None]:
    """What stood at each place in conflict when an earlier version was settled; None where that is not sure.

    A place is found again by the settled lines right before and after it, if those stand there once.
    """
    recalled: list[bytes | None] = []
    for place, part in enumerate(conflict.parts):
        if isinstance(part, Clash):
            before = conflict.parts[place - 1] if place else b""
            after = conflict.parts[place + 1] if place + 1 < len(conflict.parts) else b""
            near = (before, after) if isinstance(before, bytes) and isinstance(after, bytes) else (b"", b"")
            recalled.append(_recall(settled, *near))
    return recalled


def _recall(settled: bytes, before: bytes, after: bytes) -> bytes | None:
    start = b"".join(split_lines(before)[-_NEAR:])
    end = b"".join(split_lines(after)[:_NEAR])
    # A place at an end of the file is found by its other side alone.
    if not (start or end) or (start and settled.count(start) != 1) or (end and settled.count(end) != 1):
        return None
    first = settled.index(start) + len(start) if start else 0
    last = settled.index(end) if end else len(settled)
    return settled[first:last] if first <= last else None


def earlier_settlements(harness: Harness, path: str, key: str) -> list[ConflictResolution]:
    """How other conflicts of the same file were settled, the newest first."""
    rows = harness.resolutions.filter(path=path, content__isnull=False).exclude(key=key)
    return list(rows.order_by("-decided_at")[:_MOST_EARLIER])


@dataclass(frozen=True)
class Decision:
    """How a person settles one file's conflict: by exactly one of the first three."""

    # for every place in conflict, in order
    hunks: tuple[HunkChoice, ...] = ()
    # the whole file as they wrote it
    text: str | None = None
    # the file as one side has it, OURS or THEIRS; gone where it has none
    side: Side | None = None
    reason: str = ""


def decide_content(conflict: FileConflict, decision: Decision) -> bytes | None:
    """What the file becomes, None: it goes; LoopError when nothing is decided."""
    if decision.text is not None:
        return settle_whole(conflict, decision.text)
    if decision.side is not None:
        return conflict.sides.ours if decision.side == Side.OURS else conflict.sides.theirs
    return settle_hunks(conflict, decision.hunks)


def settle_hunks(conflict: FileConflict, choices: Sequence[HunkChoice]) -> bytes:
    """The file with each hunk as it was chosen, in order; LoopError when not every hunk has a choice."""
    clashes = sum(isinstance(part, Clash) for part in conflict.parts)
    if not clashes or clashes != len(choices):
        raise LoopError(_("choose for every place in conflict"))
    left = iter(choices)
    last = len(conflict.parts) - 1
    text = b""
    for place, part in enumerate(conflict.parts):
        text += (
            _settle(part, next(left), is_last=place == last, crlf=_has_crlf(conflict))
            if isinstance(part, Clash)
            else part
        )
    return text


def _settle(clash: Clash, choice: HunkChoice, *, is_last: bool, crlf: bool) -> bytes:
    match choice.side:
        case Side.OURS:
            return clash.ours
        case Side.THEIRS:
            return clash.theirs
        case Side.OURS_FIRST:
            return _joined(clash.ours, clash.theirs, crlf=crlf)
        case Side.THEIRS_FIRST:
            return _joined(clash.theirs, clash.ours, crlf=crlf)
        case Side.OWN:
            own = as_in_file(choice.text, crlf=crlf)
            wants_end = not is_last or clash.ours.endswith(b"\n") or clash.theirs.endswith(b"\n")
            return _ended(own, crlf=crlf) if wants_end else own


def _joined(first: bytes, second: bytes, *, crlf: bool) -> bytes:
    return (_ended(first, crlf=crlf) if second else first) + second


def _ended(text: bytes, *, crlf: bool) -> bytes:
    if not text or text.endswith(b"\n"):
        return text
    return text + (b"\r\n" if crlf else b"\n")


def _has_crlf(conflict: FileConflict) -> bool:
    return any(side is not None and b"\r\n" in side for side in (conflict.sides.ours, conflict.sides.theirs))


def settle_whole(conflict: FileConflict, text: str) -> bytes:
    """The file as a person wrote it, with the line ends of the file."""
    return as_in_file(text, crlf=_has_crlf(conflict))


def as_in_file(text: str, *, crlf: bool) -> bytes:
    """What a browser sent, whose lines end as they do in a form, as bytes of a file."""
    plain = text.replace("\r\n", "\n")
    return (plain.replace("\n", "\r\n") if crlf else plain).encode()


def store_resolution(
    actor: Actor,
    proposals: Sequence[Proposal],
    conflict: FileConflict,
    content: bytes | None,
    reason: str = "",
) -> ConflictResolution:
    """Keep how a person settled a file's conflict between proposals of a harness and what is live; None deletes it.

    Whoever has confirmed what was settled before has not confirmed this.
    Raises LoopError when it can't be text of a harness, or has a problem that neither side has. What the whole
    merge is like is looked at when it is made.
    """
    harness = proposals[0].harness
    _check_content(conflict, content)
    _check_file(harness, conflict.path, content, proposals)
    text = None if content is None else content.decode()
    fields = {"path": conflict.path, "content": text, "decided_by": actor.name, "reason": reason}
    fields["confirmed_by"] = ""
    kept, _created = ConflictResolution.objects.update_or_create(
        harness=harness, key=conflict.key, defaults=fields
    )
    record(actor, "conflict.settled", kept, reason, path=kept.path, key=kept.key, deleted=content is None)
    return kept


def forget_resolution(actor: Actor, resolution: ConflictResolution) -> None:
    """Open a conflict again; steps that were built with the resolution keep it until they are rebuilt."""
    record(actor, "conflict.forgotten", resolution, path=resolution.path, key=resolution.key)
    resolution.delete()


def _check_content(conflict: FileConflict, content: bytes | None) -> None:
    if not conflict.sides.is_text or not _is_storable(conflict.path):
        raise LoopError(_("%(path)s is not text: settle it with git, outside") % {"path": conflict.path})
    if content is not None and len(content) > LARGEST:
        raise LoopError(
            _("%(path)s is larger than %(most)d bytes") % {"path": conflict.path, "most": LARGEST}
        )
    if content is not None and b"\0" in content:
        raise LoopError(_("%(path)s is not text") % {"path": conflict.path})


def _is_storable(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return len(path) <= LONGEST_PATH


def _check_file(harness: Harness, path: str, content: bytes | None, proposals: Sequence[Proposal]) -> None:
    """Refuse problems of this very file that nobody has brought; others may come from what is still open."""
    repository = open_repository(harness)
    live = repository.files(MAIN)
    together = dict(live)
    sides = [live]
    for proposal in proposals:
        files = repository.files(proposal.head_commit)
        sides.append(files)
        for changed in repository.changed_files(proposal.base_commit, proposal.head_commit):
            _put(together, changed, files.get(changed))
    _put(together, path, content)
    check_merged(sides, together, path)


def _put(files: dict[str, bytes], path: str, content: bytes | None) -> None:
    if content is None:
        files.pop(path, None)
    else:
        files[path] = content
