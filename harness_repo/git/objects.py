"""Git objects, byte exact: loose ones are read and written here, packed ones through one git process.

Nothing is kept between calls, so both sides survive a fork and serve any number of threads.
"""

import contextlib
import errno
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
from harness_repo.git.looseobjects import MAX_OBJECT_BYTES, GitObject, is_loose, read_loose, too_large
from harness_repo.git.scratch import Scratch

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


class ObjectReader:
    """Reads objects by full id; the git process for packed ones starts when the first is met, and ends with it."""

    def __init__(self, git: GitRunner, scratch: Scratch | None = None) -> None:
        self._git = git
        self._folders = loose_folders(git, scratch)
        self._env = scratch.env if scratch else None
        self._batch: GitProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the git process, if there is one; the next object that is packed starts another."""
        if self._batch is not None:
            self._batch.close()
            self._batch = None

    def find(self, sha: str) -> GitObject | None:
        """The object of this id, None when there is none; HarnessRepoError when it is damaged."""
        return find_loose(self._folders, sha) or self._read_packed(sha)

    def read(self, sha: str, kind: str) -> bytes:
        """The content of an object of this kind; HarnessRepoError when it is missing, damaged or another one."""
        found = self.find(sha)
        if found is None or found.kind != kind:
            raise HarnessRepoError(f"{kind} {sha} is missing: the repository is damaged")
        return found.data

    def _read_packed(self, sha: str) -> GitObject | None:
        if self._batch is None:
            self._batch = self._git.start("cat-file", "--batch", env=self._env)
        header = self._batch.ask(f"{sha}\n".encode()).split()
        if not header:
            raise HarnessRepoError(f"git cannot read object {sha}: there is no repository, or it is damaged")
        if len(header) != len(("id", "kind", "size")):
            return None
        size = int(header[2])
        if size > MAX_OBJECT_BYTES:
            # What would follow is not wanted.
            self.close()
            raise too_large(sha, size)
        data = self._batch.take(size + len(b"\n"))
        return GitObject(header[1].decode(), data.removesuffix(b"\n"))


def loose_folders(git: GitRunner, scratch: Scratch | None = None) -> list[bytes]:
    """Where loose objects are looked for."""
    folders = [os.fsencode(git.path / "objects")]
    return [*folders, os.fsencode(scratch.folder)] if scratch else folders


def find_loose(folders: Sequence[bytes], sha: str) -> GitObject | None:
    """A loose object in one of the folders; as `read_loose`."""
    for folder in folders:
        found = read_loose(folder, sha, MAX_OBJECT_BYTES)
        if found is not None:
            return found
    return None


class ObjectWriter:
    """Collects objects and writes them as loose ones: first in memory, on disk with `flush`."""

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self._objects = os.fsencode(path)
        self._durable = durable
        self._pending: dict[str, bytes] = {}
        self._written: dict[str, bytes] = {}

    def add(self, kind: str, data: bytes) -> str:
        """Take an object and return its id; nothing is on disk yet."""
        store = f"{kind} {len(data)}\0".encode() + data
        # Git's own identity of an object, not a protection.
        sha = hashlib.sha1(store, usedforsecurity=False).hexdigest()
        if sha not in self._written:
            self._pending.setdefault(sha, store)
        return sha

    def flush(self) -> None:
        """Write what was collected, in order; each object is complete, and on the disk, when its name appears.

        HarnessRepoError when the disk is full or read-only; what is written by then does no harm.
        """
        self._write_all(self._pending)
        self._written |= self._pending
        self._pending.clear()

    def restore(self) -> bool:
        """Write again what somebody has removed since `flush`; whether there was any."""
        gone = {sha: store for sha, store in self._written.items() if not is_loose(self._objects, sha)}
        self._write_all(gone)
        return bool(gone)

    def _write_all(self, stores: Mapping[str, bytes]) -> None:
        try:
            for sha, store in stores.items():
                self._write(sha, store)
        except OSError as failure:
            raise HarnessRepoError(f"cannot write to the repository: {failure.strerror}") from failure

    def _write(self, sha: str, store: bytes) -> None:
        folder = os.path.join(self._objects, sha[:2].encode())  # noqa: PTH118  bytes, and in the busiest place
        target = os.path.join(folder, sha[2:].encode())  # noqa: PTH118
        if self._freshen(sha, target, store):
            return
        temporary = os.path.join(folder, f"tmp_obj_{secrets.token_hex(8)}".encode())  # noqa: PTH118
        descriptor = _create(folder, temporary)
        try:
            try:
                _write_whole(descriptor, zlib.compress(store, _COMPRESSION))
                if self._durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
            os.rename(temporary, target)  # noqa: PTH104
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)  # noqa: PTH108
            raise

    def _freshen(self, sha: str, target: bytes, store: bytes) -> bool:
        """Whether the object is there, whole; it counts as new then, so that a collection of garbage spares it."""
        try:
            os.utime(target)
            found = read_loose(self._objects, sha, len(store))
        # A full disk or a crash of some other writer has left a part of it: it is written anew.
        except (OSError, HarnessRepoError):
            return False
        return found is not None


def _write_whole(descriptor: int, data: bytes) -> None:
    """One write may take a part only, when a disk fills up."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
    if os.fstat(descriptor).st_size != len(data):
        raise OSError(errno.EIO, "what was written is not all there")


def _create(folder: bytes, temporary: bytes) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        return os.open(temporary, flags, 0o444)
    except FileNotFoundError:
        os.makedirs(folder, exist_ok=True)  # noqa: PTH103
        return os.open(temporary, flags, 0o444)


def _clean(text: str) -> str:
    return "".join(char for char in text if char.isprintable() and char not in "<>").strip(" .,:;\"'")
