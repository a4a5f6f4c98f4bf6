"""What differs between two versions, by path and size: found without reading a file."""

from dataclasses import dataclass

from harness_repo.git.blobs import read_sizes
from harness_repo.git.gitio import GitRunner
from harness_repo.git.refs import ZERO

# Of git's list of changes.
_MAX_LISTING = 64 * 1024 * 1024
_SUBMODULE = "160000"


@dataclass(frozen=True)
class ChangedFile:
    """One path that is not the same on both sides; a rename is two of them."""

    path: str
    # of the larger side
    size: int


def list_changes(git: GitRunner, base: str, head: str) -> list[ChangedFile]:
    """What differs between two commits, in git's order; TooLarge when that is more than can be listed."""
    out = git.read(
        "diff-tree", "-r", "-z", "--no-renames", base, head, most=_MAX_LISTING, what="the list of changes"
    )
    fields = out.decode("utf-8", "surrogateescape").split("\0")
    rows = [
        (path, _blobs(header.removeprefix(":").split(" ")))
        for header, path in zip(fields[::2], fields[1::2], strict=False)
    ]
    sizes = read_sizes(git, [sha for _, shas in rows for sha in shas])
    return [ChangedFile(path, max((sizes[sha] for sha in shas), default=0)) for path, shas in rows]


def _blobs(header: list[str]) -> list[str]:
    """The ids of the contents on both sides; a submodule's commit is none of ours."""
    old_mode, new_mode, old, new, _status = header
    return [sha for mode, sha in ((old_mode, old), (new_mode, new)) if sha != ZERO and mode != _SUBMODULE]
