"""Reads all that stands in a folder or in a git repository that is not ours; follows no link, and runs nothing of it.

What it cannot read is not lost: it stands in the snapshot as skipped, with the reason.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness_repo.format.entries import GITMODULES, registered_submodules
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import HarnessRepository
from harness_repo.snapshot import Snapshot

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_TOTAL_BYTES = 512 * 1024 * 1024

_GIT = ".git"


class NotReadable(HarnessRepoError):
    """There is no such folder, or it may not be read."""


@dataclass(frozen=True)
class Source:
    """What was read, and from where in the history."""

    snapshot: Snapshot
    # The full commit id; empty when the folder was read as it lies there.
    commit: str = ""


def read_source(path: Path | str, ref: str | None = None) -> Source:
    """Read a folder, or a bare or other git repository.

    A bare repository is read at `ref`, by default at HEAD. Another folder is read as it lies there, with the
    submodules of its HEAD, and with `ref` at that commit. Raises NotReadable, and MissingRef or BadRef for the ref.
    """
    place = Path(path)
    repository = git_folder(place)
    if repository is None:
        if ref is not None:
            raise NotReadable(f"{place} is no git repository, so it has no {ref!r}")
        return Source(read_folder(place))
    opened = HarnessRepository(repository)
    if ref is None and not _is_bare(place):
        return Source(_with_submodules(read_folder(place), opened))
    commit = opened.resolve(ref or "HEAD")
    return Source(opened.snapshot(commit), commit)


def git_folder(path: Path | str) -> Path | None:
    """Where the objects and refs of the repository at a path are; None when there is none."""
    place = Path(path)
    if _is_bare(place):
        return place
    inner = place / _GIT
    if inner.is_file():
        inner = place / _read_line(inner).removeprefix("gitdir:").strip()
        # A further working tree shares the objects of the first.
        shared = inner / "commondir"
        inner = inner / _read_line(shared) if shared.is_file() else inner
    return inner if _is_bare(inner) else None


def read_folder(path: Path | str) -> Snapshot:
    """All that stands in a folder but its own .git, hidden files too; NotReadable when it is no folder.

    A folder with a .git of its own, or an empty one that .gitmodules names, is a submodule.
    """
    root = Path(path)
    if not root.is_dir():
        raise NotReadable(f"{root} is not a folder")
    return _FolderReader(root).read()


def _is_bare(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def _read_line(path: Path) -> str:
    return path.read_bytes()[:4096].decode("utf-8", "surrogateescape").strip()


def _with_submodules(snapshot: Snapshot, repository: HarnessRepository) -> Snapshot:
    """A submodule that is not checked out leaves nothing in the folder, so that only git knows of it."""
    try:
        committed = repository.snapshot("HEAD").submodules
    except HarnessRepoError:
        return snapshot
    missing = {
        path: sha
        for path, sha in committed.items()
        if not any(other == path or other.startswith(f"{path}/") for other in snapshot.files)
    }
    return replace(snapshot, submodules={**snapshot.submodules, **missing})


@dataclass
class _FolderReader:
    """One walk through a folder."""

    root: Path
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    submodules: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    executables: set[str] = field(default_factory=set)
    total: int = 0

    def read(self) -> Snapshot:
        """Walk, and put what was found in order."""
        empty = list(self._walk(self.root, ""))
        registered = registered_submodules(self.files.get(GITMODULES, b""))
        self.submodules |= {name: "" for name in empty if name in registered}
        return Snapshot(
            files=dict(sorted(self.files.items())),
            links=dict(sorted(self.links.items())),
            submodules=dict(sorted(self.submodules.items())),
            executables=frozenset(self.executables),
            skipped=dict(sorted(self.skipped.items())),
        )

    def _walk(self, folder: Path, prefix: str) -> Iterator[str]:
        """Take in what is below a folder; yields the folders that are empty."""
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError as failure:
            self._skip(prefix.rstrip("/") or ".", failure)
            return
        if not entries and prefix:
            yield prefix.rstrip("/")
        for entry in entries:
            name = prefix + entry.name
            if entry.name == _GIT:
                continue
            if not entry.is_dir(follow_symlinks=False):
                self._take(entry, name)
            elif Path(entry.path, _GIT).exists():
                self.submodules[name] = ""
            else:
                yield from self._walk(Path(entry.path), f"{name}/")

    def _take(self, entry: os.DirEntry[str], name: str) -> None:
        try:
            if entry.is_symlink():
                self.links[name] = str(Path(entry.path).readlink())
                return
            found = entry.stat(follow_symlinks=False)
            reason = self._refusal(found)
            if reason:
                self.skipped[name] = reason
                return
            self.files[name] = _read_bytes(entry.path)
        except OSError as failure:
            self._skip(name, failure)
            return
        self.total += found.st_size
        if found.st_mode & stat.S_IXUSR:
            self.executables.add(name)

    def _refusal(self, found: os.stat_result) -> str:
        if not stat.S_ISREG(found.st_mode):
            return "it is neither a file nor a folder nor a link"
        if found.st_size > MAX_FILE_BYTES:
            return f"it has more than {MAX_FILE_BYTES // 1024**2} MB"
        is_too_much = self.total + found.st_size > MAX_TOTAL_BYTES
        return f"the folder has more than {MAX_TOTAL_BYTES // 1024**2} MB" if is_too_much else ""

    def _skip(self, name: str, failure: OSError) -> None:
        self.skipped[name] = failure.strerror or "it cannot be read"


def _read_bytes(path: str) -> bytes:
    """A regular file's content; an OSError when a link or a pipe stands there by now."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()
