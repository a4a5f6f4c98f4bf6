"""Git objects, byte exact: loose ones are read and written here, packed ones through one git process.

Nothing is kept between calls, so both sides survive a fork and serve any number of threads.
"""

import contextlib
import hashlib
import os
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.gitio import GitProcess, GitRunner

# Git reads any level; the fastest one is what git itself takes for loose objects.
_COMPRESSION = 1


@dataclass(frozen=True)
class Author:
    """Who a commit is by; characters that would break git's header are dropped."""

    name: str
    email: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", _clean(self.name) or "unknown")
        object.__setattr__(self, "email", _clean(self.email) or "unknown@localhost")


@dataclass(frozen=True)
class GitObject:
    """One object: kind is blob, tree, commit or tag."""

    kind: str
    data: bytes


class ObjectReader:
    """Reads objects by full id; the git process for packed ones starts when the first is met, and ends with it."""

    def __init__(self, git: GitRunner) -> None:
        self._git = git
        self._objects = os.fsencode(git.path / "objects")
        self._batch: GitProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        if self._batch is not None:
            self._batch.close()
            self._batch = None

    def find(self, sha: str) -> GitObject | None:
        """The object of this id, None when there is none; HarnessRepoError when it is damaged."""
        return _read_loose(self._objects, sha) or self._read_packed(sha)

    def read(self, sha: str, kind: str) -> bytes:
        """The content of an object of this kind; HarnessRepoError when it is missing, damaged or another one."""
        found = self.find(sha)
        if found is None or found.kind != kind:
            raise HarnessRepoError(f"{kind} {sha} is missing: the repository is damaged")
        return found.data

    def _read_packed(self, sha: str) -> GitObject | None:
        if self._batch is None:
            self._batch = self._git.start("cat-file", "--batch")
        header = self._batch.ask(f"{sha}\n".encode()).split()
        if len(header) != len(("id", "kind", "size")):
            return None
        data = self._batch.take(int(header[2]) + len(b"\n"))
        return GitObject(header[1].decode(), data.removesuffix(b"\n"))


def read_blobs(git: GitRunner, shas: Sequence[str], env: Mapping[str, str] | None = None) -> dict[str, bytes]:
    """The contents of blobs by id; those that are packed all come through one process, with this environment."""
    objects = os.fsencode(git.path / "objects")
    loose = {sha: _read_loose(objects, sha) for sha in dict.fromkeys(shas)}
    blobs = {sha: found.data for sha, found in loose.items() if found is not None}
    packed = [sha for sha, found in loose.items() if found is None]
    return blobs | _read_packed_blobs(git, packed, env) if packed else blobs


class ObjectWriter:
    """Collects objects and writes them as loose ones: first in memory, on disk with `flush`."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self._objects = os.fsencode(path)
        self._durable = durable
        self._pending: dict[str, bytes] = {}

    def add(self, kind: str, data: bytes) -> str:
        """Take an object and return its id; nothing is on disk yet."""
        store = f"{kind} {len(data)}\0".encode() + data
        # Git's own identity of an object, not a protection.
        sha = hashlib.sha1(store, usedforsecurity=False).hexdigest()
        self._pending.setdefault(sha, store)
        return sha

    def flush(self) -> None:
        """Write what was collected, in order; each object is complete, and on the disk, when its name appears.

        HarnessRepoError when the disk is full or read-only; what is written by then does no harm.
        """
        try:
            for sha, store in self._pending.items():
                self._write(sha, store)
        except OSError as failure:
            raise HarnessRepoError(f"cannot write to the repository: {failure.strerror}") from failure
        self._pending.clear()

    def _write(self, sha: str, store: bytes) -> None:
        folder = os.path.join(self._objects, sha[:2].encode())  # noqa: PTH118  bytes, and in the busiest place
        target = os.path.join(folder, sha[2:].encode())  # noqa: PTH118
        if _freshen(target):
            return
        temporary = os.path.join(folder, f"tmp_obj_{secrets.token_hex(8)}".encode())  # noqa: PTH118
        descriptor = _create(folder, temporary)
        try:
            with os.fdopen(descriptor, "wb", buffering=0) as file:
                file.write(zlib.compress(store, _COMPRESSION))
                if self._durable:
                    os.fsync(descriptor)
            os.rename(temporary, target)  # noqa: PTH104
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
            raise


def _freshen(target: bytes) -> bool:
    """Whether the object is there; it counts as new then, so that a collection of garbage spares it."""
    try:
        os.utime(target)
    except OSError:
        return False
    # A crash of some other writer may have left an empty file.
    return os.stat(target).st_size > 0  # noqa: PTH116


def _create(folder: bytes, temporary: bytes) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(temporary, flags, 0o444)
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        return os.open(temporary, flags, 0o444)


def _read_loose(objects: bytes, sha: str) -> GitObject | None:
    """A loose object, None when it is not loose."""
    path = b"/".join((objects, sha[:2].encode(), sha[2:].encode()))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        packed = os.read(descriptor, os.fstat(descriptor).st_size)
    finally:
        os.close(descriptor)
    return _parse_loose(sha, packed)


def _parse_loose(sha: str, packed: bytes) -> GitObject:
    try:
        header, _, data = zlib.decompress(packed).partition(b"\0")
        kind, size = header.decode("ascii").split(" ")
        is_whole = int(size) == len(data)
    except (ValueError, zlib.error) as failure:
        raise HarnessRepoError(f"object {sha} is damaged: {failure}") from failure
    if not is_whole:
        raise HarnessRepoError(f"object {sha} is damaged: it is not complete")
    return GitObject(kind, data)


def _read_packed_blobs(
    git: GitRunner, shas: Sequence[str], env: Mapping[str, str] | None
) -> dict[str, bytes]:
    asked = "".join(f"{sha}\n" for sha in shas).encode()
    out = git.run("cat-file", "--batch", "--buffer", stdin=asked, env=env).out
    blobs: dict[str, bytes] = {}
    at = 0
    for sha in shas:
        end = out.index(b"\n", at)
        header = out[at:end].split(b" ")
        if len(header) != len(("id", "kind", "size")):
            raise HarnessRepoError(f"object {sha} is missing: the repository is damaged")
        size = int(header[2])
        blobs[sha] = out[end + 1 : end + 1 + size]
        at = end + 2 + size
    return blobs


def _clean(text: str) -> str:
    return "".join(char for char in text if char.isprintable() and char not in "<>").strip(" .,:;\"'")
