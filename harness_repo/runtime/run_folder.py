"""The folder of one run of a command: locked while its worker lives, so that others can tell what a dead one left."""

import contextlib
import fcntl
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from harness_repo.git.worktree import remove_folder

PREFIX = "harness-run-"
# A folder that has only just been made may not be locked yet.
SECONDS_TO_LOCK = 60.0


@dataclass(frozen=True)
class RunFolder:
    """Two empty folders: one for the version's files, one for what the command wants to put aside."""

    root: Path
    # The kernel gives the lock back when the process ends, however it ends.
    lock: int

    @classmethod
    def make(cls) -> Self:
        """A new folder; OSError when there can be none."""
        root = Path(tempfile.mkdtemp(prefix=PREFIX))
        made = cls(root, _lock(root))
        made.tree.mkdir()
        made.scratch.mkdir()
        return made

    @property
    def tree(self) -> Path:
        """Working directory and home of the command."""
        return self.root / "tree"

    @property
    def scratch(self) -> Path:
        """Its TMPDIR."""
        return self.root / "tmp"

    def remove(self) -> None:
        """Remove it with all that is in it, as far as possible."""
        remove_folder(self.root)
        with contextlib.suppress(OSError):
            os.close(self.lock)


def sweep_folders() -> None:
    """Remove the folders of workers that have died, as far as possible; those of live ones are locked."""
    for root in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_ours(root):
                lock = _lock(root)
                remove_folder(root)
                os.close(lock)


def _is_ours(root: Path) -> bool:
    """Whether it is this user's folder, and older than it takes to lock one."""
    status = root.lstat()
    is_old = time.time() - status.st_ctime > SECONDS_TO_LOCK
    return root.is_dir() and not root.is_symlink() and status.st_uid == os.geteuid() and is_old


def _lock(root: Path) -> int:
    """A lock on a folder, held until it is closed; BlockingIOError, an OSError, when somebody else has it."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle
