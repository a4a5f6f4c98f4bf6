"""A bare repository as it comes to be: built in a hidden folder, and there at once, complete, or not at all."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness_repo.git.commits import write_commit
from harness_repo.git.errors import RepoExists
from harness_repo.git.gitio import GitRunner
from harness_repo.git.objects import Author, ObjectReader, ObjectWriter
from harness_repo.git.refs import BRANCHES, ZERO
from harness_repo.git.trees import edit_tree

MAIN = "main"


@contextlib.contextmanager
def building_repository(path: Path | str) -> Iterator[GitRunner]:
    """Give a hidden folder to build a repository in, which appears at the path, complete, when the block ends well.

    RepoExists if the path is taken; of two that build at once, one succeeds.
    """
    target = Path(path).absolute()
    if target.exists():
        raise RepoExists(f"there is something at {target}")
    target.parent.mkdir(parents=True, exist_ok=True)
    building = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        yield GitRunner(building)
        building.chmod(0o755)
        try:
            building.rename(target)
        except OSError as failure:
            raise RepoExists(f"there is something at {target}") from failure
    finally:
        shutil.rmtree(building, ignore_errors=True)


def initialise(runner: GitRunner) -> None:
    """Make the folder an empty bare repository whose HEAD is main."""
    runner.run("init", "--quiet", "--bare", "--template=", f"--initial-branch={MAIN}")


def write_first(runner: GitRunner, files: Mapping[str, bytes], author: Author, message: str) -> None:
    """Make the folder a bare repository with one commit on main."""
    initialise(runner)
    writer = ObjectWriter(runner.path / "objects")
    with ObjectReader(runner) as reader:
        tree = edit_tree(reader, writer, None, files)
    first = write_commit(writer, tree, [], author, message)
    writer.flush()
    runner.run("update-ref", f"{BRANCHES}{MAIN}", first, ZERO)
