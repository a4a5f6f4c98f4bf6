"""The contents of many blobs at once, within bounds: loose ones in process, packed ones through one git process."""

from collections.abc import Mapping, Sequence

from harness_repo.git.errors import HarnessRepoError, TooLarge
from harness_repo.git.gitio import GitProcess, GitRunner
from harness_repo.git.looseobjects import MAX_OBJECT_BYTES
from harness_repo.git.objects import find_loose, loose_folders
from harness_repo.git.scratch import Scratch

# Of all files of a version together.
MAX_TOTAL_BYTES = 512 * 1024 * 1024


def read_blobs(
    git: GitRunner, shas: Sequence[str], scratch: Scratch | None = None
) -> dict[str, bytes | None]:
    """The contents of blobs by id, None for one that is larger than MAX_OBJECT_BYTES; also those in `scratch`.

    HarnessRepoError when one is missing or damaged,
    TooLarge when they are larger than MAX_TOTAL_BYTES together.
    """
    folders = loose_folders(git, scratch)
    blobs: dict[str, bytes | None] = {}
    packed: list[str] = []
    left = MAX_TOTAL_BYTES
    for sha in dict.fromkeys(shas):
        try:
            found = find_loose(folders, sha)
        except TooLarge:
            blobs[sha] = None
            continue
        if found is None:
            packed.append(sha)
        else:
            blobs[sha] = found.data
            left = spend(left, len(found.data))
    env = scratch.env if scratch else None
    return blobs | _read_packed(git, packed, env, left) if packed else blobs


def read_sizes(git: GitRunner, shas: Sequence[str]) -> dict[str, int]:
    """The sizes of objects by id; HarnessRepoError when one is missing."""
    process = git.start("cat-file", "--batch-command", "--buffer")
    try:
        return _ask_sizes(process, list(dict.fromkeys(shas)))
    finally:
        process.close()


def spend(left: int, size: int) -> int:
    """What is left of the bytes that a version may have; TooLarge when that is not enough."""
    if size > left:
        raise TooLarge(f"the files of the version have more than {MAX_TOTAL_BYTES // 1024**2} MB together")
    return left - size


def _read_packed(
    git: GitRunner, shas: Sequence[str], env: Mapping[str, str] | None, left: int
) -> dict[str, bytes | None]:
    process = git.start("cat-file", "--batch-command", "--buffer", env=env)
    try:
        sizes = _ask_sizes(process, shas)
        for size in sizes.values():
            left = spend(left, size) if size <= MAX_OBJECT_BYTES else left
        wanted = [sha for sha, size in sizes.items() if size <= MAX_OBJECT_BYTES]
        process.send(b"".join(b"contents %s\n" % sha.encode() for sha in wanted) + b"flush\n")
        return dict.fromkeys(shas) | {sha: _take(process, sha) for sha in wanted}
    finally:
        process.close()


def _ask_sizes(process: GitProcess, shas: Sequence[str]) -> dict[str, int]:
    process.send(b"".join(b"info %s\n" % sha.encode() for sha in shas) + b"flush\n")
    return {sha: _size(process.line(), sha) for sha in shas}


def _take(process: GitProcess, sha: str) -> bytes:
    return process.take(_size(process.line(), sha) + len(b"\n"))[:-1]


def _size(header: bytes, sha: str) -> int:
    fields = header.split()
    if len(fields) != len(("id", "kind", "size")):
        raise HarnessRepoError(f"object {sha} is missing: the repository is damaged")
    return int(fields[2])
