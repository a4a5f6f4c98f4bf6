"""A place for objects that nobody keeps, beside those of a repository."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness_repo.git.gitio import GitRunner


@dataclass(frozen=True)
class Scratch:
    """Where such objects are; git reads those of the repository too."""

    folder: Path
    repository: Path

    @property
    def env(self) -> dict[str, str]:
        """For a git process that writes there."""
        return {
            "GIT_OBJECT_DIRECTORY": str(self.folder),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": _quoted(str(self.repository / "objects")),
        }

    @property
    def reading_env(self) -> dict[str, str]:
        """For a git process that only reads there, and writes into the repository."""
        return {"GIT_ALTERNATE_OBJECT_DIRECTORIES": str(self.folder)}


@contextmanager
def scratch_objects(git: GitRunner) -> Iterator[Scratch]:
    """Make the place; what is in it is gone when the block ends."""
    with tempfile.TemporaryDirectory(prefix="harness-objects-") as folder:
        yield Scratch(Path(folder), git.path)


def _quoted(path: str) -> str:
    """A path in git's list of object folders, where a colon separates and a quoted name may hold one."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if ":" in path or '"' in path else path
