"""One writer of refs at a time, and what a writer that died has left behind.

The kernel frees the lock when its last holder is gone. The git process that moves a ref holds it too, so
whoever has the lock knows that no git process of ours is at work, even when the program around it was killed.
"""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness_repo.git.errors import HarnessRepoError, RepoBusy

LOCK_NAME = "workbench.lock"
WAIT_SECONDS = 10.0
# A ref lock that one of ours left is taken away when it has this age: an operator's own git is done by then.
_OURS_SECONDS = 0.5
# One that nobody of ours announced may be of a git that waits for something.
STALE_SECONDS = 30.0
_POLL_SECONDS = 0.002
# Where git says which process collects garbage.
_GC = "gc.pid"


_held: set[int] = set()


def _forget_held() -> None:
    """A child that another thread forks meanwhile is no writer: what it inherited would keep the lock for ever."""
    for descriptor in _held:
        os.close(descriptor)
    _held.clear()


os.register_at_fork(after_in_child=_forget_held)


class WriterLock:
    """Held: nobody else of ours moves refs. `descriptor` is for the git process that does."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self.descriptor = descriptor
        self._said: list[str] = []

    @contextlib.contextmanager
    def announced(self, refs: Sequence[str]) -> Iterator[None]:
        """Say which refs are about to be locked, so that a successor can clear up if this process dies."""
        before = self._said
        self._say([*before, *refs])
        yield
        self._say(before)

    def clear_up(self) -> None:
        """Take away the git locks of a writer that died while it held this one."""
        left = os.pread(self.descriptor, os.fstat(self.descriptor).st_size, 0)
        if left:
            for lock in self._locks_for(os.fsdecode(left).split("\n")):
                _remove_aged(lock, _OURS_SECONDS, wait=True)
            os.ftruncate(self.descriptor, 0)

    def clear_stale(self, refs: Sequence[str]) -> None:
        """Take away git locks in the way of refs that are too old to be of a living git."""
        for lock in self._locks_for(refs):
            _remove_aged(lock, STALE_SECONDS, wait=False)

    @contextlib.contextmanager
    def no_collection(self, seconds: float = WAIT_SECONDS) -> Iterator[None]:
        """Wait until no `git gc` is at work, and let none begin; RepoBusy when one is for that long.

        One that is sure by now that nothing leads to the new objects would remove them after the ref has moved.
        """
        lock = self._path / f"{_GC}.lock"
        deadline = time.monotonic() + seconds
        with self.announced([_GC]):
            while not self._forbid_collection(lock):
                if time.monotonic() > deadline:
                    raise RepoBusy(f"git gc is at work in {self._path.name}")
                time.sleep(_POLL_SECONDS)
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)

    def _forbid_collection(self, lock: Path) -> bool:
        """Take the lock that a git takes before it collects garbage; not while one does, or is about to."""
        if _is_collecting(self._path):
            return False
        _remove_aged(lock, STALE_SECONDS, wait=False)
        try:
            os.close(os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
        except FileExistsError:
            return False
        # One may have begun in between.
        if _is_collecting(self._path):
            lock.unlink(missing_ok=True)
            return False
        return True

    def _say(self, refs: list[str]) -> None:
        text = os.fsencode("\n".join(refs))
        os.pwrite(self.descriptor, text, 0)
        os.ftruncate(self.descriptor, len(text))
        self._said = refs

    def _locks_for(self, refs: Sequence[str]) -> list[Path]:
        names = (*(f"{ref}.lock" for ref in refs), "HEAD.lock", "packed-refs.lock", "packed-refs.new")
        return [self._path / name for name in names]


@contextlib.contextmanager
def writer_lock(path: Path, seconds: float = WAIT_SECONDS) -> Iterator[WriterLock]:
    """Be the repository's one writer of refs; RepoBusy when others are for that long."""
    with hold_lock(path, LOCK_NAME, seconds=seconds) as descriptor:
        lock = WriterLock(path, descriptor)
        lock.clear_up()
        yield lock


@contextlib.contextmanager
def hold_lock(path: Path, name: str, *, seconds: float) -> Iterator[int]:
    """Hold a lock file of the repository, given as its descriptor; RepoBusy when others do for that long."""
    try:
        descriptor = os.open(path / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as failure:
        raise HarnessRepoError(f"cannot write to {path.name}: {failure.strerror}") from failure
    _held.add(descriptor)
    try:
        _acquire(path, descriptor, seconds)
        yield descriptor
    finally:
        # Not there any more in a child that was forked inside the block.
        if descriptor in _held:
            _held.remove(descriptor)
            os.close(descriptor)


def _acquire(path: Path, descriptor: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise RepoBusy(f"another process writes to {path.name}") from None
            time.sleep(_POLL_SECONDS)
        else:
            return


def _remove_aged(lock: Path, seconds: float, *, wait: bool) -> None:
    """Remove a lock file of this age or older, waiting until it is if asked."""
    # Most often there is none.
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        found = lock.stat()
        missing = seconds - (time.time() - found.st_mtime)
        if missing <= 0 or wait:
            time.sleep(min(max(missing, 0), seconds))
            # Meanwhile a living git may have locked the ref: that is another file, or a newer one.
            if _identity(lock.stat()) == _identity(found):
                lock.unlink()


def _is_collecting(path: Path) -> bool:
    """Whether a living `git gc` says that it is at work; of another machine's nobody knows whether it lives."""
    try:
        text = (path / _GC).read_text("utf-8", "replace")
        pid, _, host = text.strip().partition(" ")
        if host == socket.gethostname():
            os.kill(int(pid), 0)
    except (FileNotFoundError, NotADirectoryError, ProcessLookupError, ValueError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _identity(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_ino, found.st_mtime_ns, found.st_size
