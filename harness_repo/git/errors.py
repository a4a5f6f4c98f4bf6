"""Typed errors of the repository edge; every one of them is a HarnessRepoError."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from harness_repo.git.conflicts import FileConflict


class HarnessRepoError(Exception):
    """A harness repository could not do what was asked of it."""


class StaleBase(HarnessRepoError):
    """The branch moved since the caller looked: read again, and decide again."""


class MissingRef(HarnessRepoError):
    """No branch, tag, commit or file of that name."""


class MergeConflict(HarnessRepoError):
    """Heads that change the same lines: what is open per file and hunk, and which head brought it."""

    def __init__(self, message: str, conflicts: "Sequence[FileConflict]", head: str = "") -> None:
        super().__init__(message)
        self.conflicts = tuple(conflicts)
        # The full id of the commit that could not be merged.
        self.head = head

    @property
    def files(self) -> tuple[str, ...]:
        """The paths in conflict, sorted."""
        return tuple(sorted({conflict.path for conflict in self.conflicts}))


class BadRef(HarnessRepoError):
    """A ref name that git would refuse, that could be taken for an option, or that clashes with another's."""


class RefExists(BadRef):
    """A tag of that name exists already; tags are never moved."""


class BadPath(HarnessRepoError):
    """A path that is absolute, climbs out of the tree, or could be taken for something else."""


class RepoBusy(HarnessRepoError):
    """Another process holds the lock; trying again later is all right."""


class TooLarge(HarnessRepoError):
    """A version, a file or another object that has more than is taken in here; the message says what has."""


class TimedOut(HarnessRepoError):
    """A git process did not end in time, and was killed."""


class RepoExists(HarnessRepoError):
    """There is something at the path where a new repository was to be created."""


class NothingToCommit(HarnessRepoError):
    """The edits leave the tree as it is."""


class BadRemote(HarnessRepoError):
    """An address that the operator does not allow, or that git could take for something else."""


class RemoteFailed(HarnessRepoError):
    """Another repository cannot be reached, refuses, or is none; the message holds no secret."""
