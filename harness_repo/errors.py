"""Typed errors of the repository edge; every one of them is a HarnessRepoError."""

from collections.abc import Sequence


class HarnessRepoError(Exception):
    """A harness repository could not do what was asked of it."""


class StaleBase(HarnessRepoError):
    """The branch moved since the caller looked: read again, and decide again."""


class MissingRef(HarnessRepoError):
    """No branch, tag, commit or file of that name."""


class MergeConflict(HarnessRepoError):
    """Heads that change the same lines; `files` names the paths in conflict, sorted."""

    def __init__(self, message: str, files: Sequence[str]) -> None:
        super().__init__(message)
        self.files = tuple(files)


class BadRef(HarnessRepoError):
    """A ref name that git would refuse, or that could be taken for an option."""


class RefExists(BadRef):
    """A tag of that name exists already; tags are never moved."""


class BadPath(HarnessRepoError):
    """A path that is absolute, climbs out of the tree, or could be taken for something else."""


class RepoBusy(HarnessRepoError):
    """Another process holds the lock; trying again later is all right."""


class RepoExists(HarnessRepoError):
    """There is something at the path where a new repository was to be created."""


class NothingToCommit(HarnessRepoError):
    """The edits leave the tree as it is."""
