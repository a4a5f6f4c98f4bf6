"""All that stands under a version, within bounds."""

from harness_repo.git.blobs import MAX_TOTAL_BYTES, read_blobs, read_sizes, spend
from harness_repo.git.gitio import GitRunner
from harness_repo.git.looseobjects import MAX_OBJECT_BYTES
from harness_repo.git.trees import read_tree
from harness_repo.snapshot import Snapshot

TOO_LARGE = f"it has more than {MAX_OBJECT_BYTES // 1024**2} MB"


def read_snapshot(git: GitRunner, commit: str) -> Snapshot:
    """What stands under a commit; a file that is too large is skipped, TooLarge when all is too much together."""
    entries = read_tree(git, commit)
    blobs = read_blobs(git, [entry.sha for entry in entries if not entry.is_submodule])
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    skipped: dict[str, str] = {}
    left = MAX_TOTAL_BYTES
    for entry in entries:
        data = blobs.get(entry.sha)
        if entry.is_submodule:
            continue
        if data is None:
            skipped[entry.path] = TOO_LARGE
            continue
        # Of one blob that stands at a thousand paths there are a thousand files.
        left = spend(left, len(data))
        if entry.is_link:
            links[entry.path] = data.decode("utf-8", "surrogateescape")
        elif entry.is_file:
            files[entry.path] = data
    return Snapshot(
        files=files,
        links=links,
        submodules={entry.path: entry.sha for entry in entries if entry.is_submodule},
        executables=frozenset(
            entry.path for entry in entries if entry.mode == "100755" and entry.path in files
        ),
        skipped=skipped,
    )


def check_size(git: GitRunner, commit: str) -> None:
    """TooLarge when a commit has more files than are read here, or larger ones together."""
    entries = [entry for entry in read_tree(git, commit) if not entry.is_submodule]
    sizes = read_sizes(git, [entry.sha for entry in entries])
    left = MAX_TOTAL_BYTES
    for entry in entries:
        left = spend(left, sizes[entry.sha]) if sizes[entry.sha] <= MAX_OBJECT_BYTES else left
