"""Loose objects of a repository that may be damaged or hostile: read within bounds, and checked against their id."""

import hashlib
import os
import re
import stat
import zlib
from dataclasses import dataclass

from harness_repo.git.errors import HarnessRepoError, TooLarge

# One object that is read as a whole. A blob that has more is no text that anybody edits.
MAX_OBJECT_BYTES = 16 * 1024 * 1024

_HEADER = re.compile(rb"(blob|tree|commit|tag) (0|[1-9][0-9]{0,18})\0")
_LONGEST_HEADER = 32
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class GitObject:
    """One object: kind is blob, tree, commit or tag."""

    kind: str
    data: bytes


def is_loose(objects: bytes, sha: str) -> bool:
    """Whether there is a loose object of this id."""
    return os.path.exists(_path(objects, sha))  # noqa: PTH110  bytes


def read_loose(objects: bytes, sha: str, most: int) -> GitObject | None:
    """A loose object, None when it is not loose.

    HarnessRepoError when it is damaged, TooLarge when it has more than `most` bytes (with its header), before they
    are unpacked.
    """
    if not _OBJECT_ID.fullmatch(sha):
        raise HarnessRepoError("the repository is damaged: what should be the id of an object is none")
    packed = _read(_path(objects, sha), sha, most)
    return _unpack(sha, packed, most) if packed is not None else None


def too_large(sha: str, size: int) -> TooLarge:
    """The error for an object that is not read."""
    return TooLarge(f"object {sha} has {size:,} bytes, which is more than can be read here")


def _path(objects: bytes, sha: str) -> bytes:
    return b"/".join((objects, sha[:2].encode(), sha[2:].encode()))


def _read(path: bytes, sha: str, most: int) -> bytes | None:
    """The file as it is; None when there is none."""
    try:
        # Opening a pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as failure:
        raise HarnessRepoError(f"object {sha} cannot be read: {failure.strerror}") from failure
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise HarnessRepoError(f"object {sha} is damaged: it is no file")
        # What cannot be compressed grows a little. More is not read: the header says how much it is.
        return os.read(descriptor, min(found.st_size, most + most // 1000 + 1024))
    finally:
        os.close(descriptor)


def _unpack(sha: str, packed: bytes, most: int) -> GitObject:
    stream = zlib.decompressobj()
    try:
        start = stream.decompress(packed, _LONGEST_HEADER)
        header = _HEADER.match(start)
        if header is None:
            raise HarnessRepoError(f"object {sha} is damaged: it has no header")
        size = len(header[0]) + int(header[2])
        if size > most + _LONGEST_HEADER:
            raise too_large(sha, int(header[2]))
        store = (
            start + stream.decompress(stream.unconsumed_tail, size + 1 - len(start))
            if size >= len(start)
            else start
        )
    except zlib.error as failure:
        raise HarnessRepoError(f"object {sha} is damaged: {failure}") from failure
    if len(store) != size or not stream.eof or stream.unused_data:
        raise HarnessRepoError(f"object {sha} is damaged: it is not complete")
    if hashlib.sha1(store, usedforsecurity=False).hexdigest() != sha:
        raise HarnessRepoError(f"object {sha} is damaged: it has another content")
    return GitObject(header[1].decode("ascii"), store[len(header[0]) :])
