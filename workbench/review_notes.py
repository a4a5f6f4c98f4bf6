"""What hangs beside the lines of a proposal's diff: flags of what a reviewer must not overlook, and threads."""

from dataclasses import dataclass, field

from django.http import HttpRequest

from evolution.models import ConflictResolution, Proposal
from evolution.queries.reviews import SpokenThread, list_threads
from workbench.access import actor_of
from workbench.diff_view import line_key
from workbench.review_flags import FlagAtLine, list_flags


@dataclass
class Notes:
    """What stands under one line, or under the head of a file."""

    flags: list[FlagAtLine] = field(default_factory=list)
    threads: list[SpokenThread] = field(default_factory=list)
    # how conflicts in the file were settled
    settled: list[ConflictResolution] = field(default_factory=list)


@dataclass(frozen=True)
class ReviewNotes:
    """All notes of a proposal: those in their places, and the threads that have none in this diff."""

    places: dict[str, Notes]
    flags: list[FlagAtLine]
    threads: list[SpokenThread]
    # about the proposal as a whole
    general: list[SpokenThread]
    # whose line is there no longer
    outdated: list[SpokenThread]

    @property
    def open_threads(self) -> int:
        """How many are not resolved."""
        return sum(spoken.thread.resolved_at is None for spoken in self.threads)


def read_notes(proposal: Proposal) -> ReviewNotes:
    """Flags and threads of the proposal's newest diff."""
    flags, threads = list_flags(proposal), list_threads(proposal)
    places: dict[str, Notes] = {}
    for flag in flags:
        key = line_key(flag.flag.path, flag.flag.side, flag.flag.line)
        places.setdefault(key, Notes()).flags.append(flag)
    for spoken in threads:
        placed = spoken.placed
        if placed.path and not placed.is_outdated:
            key = line_key(placed.path, spoken.thread.side, placed.line)
            places.setdefault(key, Notes()).threads.append(spoken)
    return ReviewNotes(
        places=places,
        flags=flags,
        threads=threads,
        general=[spoken for spoken in threads if not spoken.placed.path],
        outdated=[spoken for spoken in threads if spoken.placed.is_outdated],
    )


def list_notes(request: HttpRequest, proposal: Proposal) -> dict[str, Notes]:
    """The notes in their places, for a part of the diff that is loaded later."""
    actor_of(request)
    return read_notes(proposal).places
