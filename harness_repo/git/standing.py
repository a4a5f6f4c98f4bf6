"""That what a new version needs is still there when a ref is moved to it, whatever an operator's gc does meanwhile."""

import os
from pathlib import Path

from harness_repo.git.errors import RepoBusy
from harness_repo.git.gitio import GitRunner
from harness_repo.git.looseobjects import is_loose
from harness_repo.git.objects import ObjectWriter


class Standing:
    """Remembers, from before the first object is written, what a version builds on."""

    def __init__(self, git: GitRunner, writer: ObjectWriter) -> None:
        self._git = git
        self._writer = writer
        self._objects = os.fsencode(git.path / "objects")
        self._packs = _pack_state(git.path)
        # Object -> whether it was a loose one.
        self._needed: dict[str, bool] = {}

    def need(self, *shas: str) -> None:
        """Say that these, which are there now, are to be kept."""
        self._needed |= {sha: is_loose(self._objects, sha) for sha in shas}

    def check(self, new: str) -> None:
        """Write again what is gone of the new objects; RepoBusy when others that the commit needs are gone.

        To be called in the writer lock. All is looked at only when a sign says that objects were removed.
        """
        is_changed = self._writer.restore() or self._packs != _pack_state(self._git.path)
        is_moved = any(was and not is_loose(self._objects, sha) for sha, was in self._needed.items())
        if is_changed or is_moved:
            arguments = ("rev-list", "--objects", "--quiet", new, "--not", "--all")
            if self._git.run(*arguments, allowed=range(-64, 256)).code:
                raise RepoBusy("objects were removed meanwhile, as by `git gc --prune=now`: try again")


def _pack_state(path: Path) -> int:
    try:
        return (path / "objects" / "pack").stat().st_mtime_ns
    except OSError:
        return 0
