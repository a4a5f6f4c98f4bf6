"""Reads all that stands in a folder or in a git repository that is not ours; follows no link, and runs nothing of it.

What it cannot read is not lost: it stands in the snapshot as skipped, with the reason.
"""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness_repo.format.entries import GITMODULES, registered_submodules
from harness_repo.format.harness import is_harness_path, skill_folders_of
from harness_repo.git.errors import HarnessRepoError, MissingRef
from harness_repo.git.repository import HarnessRepository
from harness_repo.gitfolder import find_git_folder, is_bare_repository, looks_like_git
from harness_repo.snapshot import Snapshot

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_TOTAL_BYTES = 512 * 1024 * 1024
# Of folders inside one another; the longest path that anything here takes has 1,024 bytes.
MAX_DEPTH = 100

_GIT = ".git"


class NotReadable(HarnessRepoError):
    """There is no such folder, or it may not be read."""


@dataclass(frozen=True)
class Source:
    """What was read, and from where in the history."""

    snapshot: Snapshot
    # The full commit id; empty when the folder was read as it lies there.
    commit: str = ""
    # What whoever asked should know of how it was read; mostly nothing.
    note: str = ""
    # How many files of a working folder are not as its HEAD has them, without new ones that are no part of a harness.
    differing: int = 0


def read_source(path: Path | str, ref: str | None = None) -> Source:
    """Read a folder, or a bare or other git repository.

    A bare repository is read at `ref`, by default at HEAD. Another folder is read as it lies there, with the
    submodules of its HEAD, and with `ref` at that commit. Raises NotReadable, and MissingRef or BadRef for the ref.
    """
    place = Path(path)
    repository = git_folder(place)
    if repository is None:
        return _read_without_git(place, ref)
    opened = HarnessRepository(repository)
    if ref is None and repository != place:
        return _with_submodules(read_folder(place), opened)
    commit = opened.resolve(ref or "HEAD")
    return Source(opened.snapshot(commit), commit)


def git_folder(path: Path | str) -> Path | None:
    """Where the objects and refs of the repository at a path are; None when there is none of its own."""
    place = Path(path)
    return place if is_bare_repository(place) else find_git_folder(place)


def read_folder(path: Path | str) -> Snapshot:
    """All that stands in a folder but its own .git, hidden files too; NotReadable when it is no folder.

    A folder with a .git of its own, or an empty one that .gitmodules names, is a submodule. No link is followed,
    whatever changes in the folder meanwhile.
    """
    try:
        root = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except NotADirectoryError:
        raise NotReadable(f"{path} is not a folder") from None
    except OSError as failure:
        raise NotReadable(f"the folder {path} cannot be read: {failure.strerror}") from None
    except ValueError as failure:
        raise NotReadable(f"{str(path)!r} can be no folder: {failure}") from None
    try:
        return _FolderReader(root).read()
    finally:
        os.close(root)


def _read_without_git(place: Path, ref: str | None) -> Source:
    note = ""
    if looks_like_git(place):
        note = f"{place} has HEAD, objects and refs among other things: read as a folder, and not as a repository"
    elif os.path.lexists(place / _GIT):
        note = f"the .git in {place} is no repository of this folder, and is left alone"
    if ref is not None:
        because = f" ({note})" if note else ""
        raise NotReadable(f"{place} is no git repository, so it has no {ref!r}{because}")
    return Source(read_folder(place), note=note)


def _with_submodules(snapshot: Snapshot, repository: HarnessRepository) -> Source:
    """A submodule that is not checked out leaves nothing in the folder, so that only git knows of it."""
    try:
        committed = repository.snapshot("HEAD")
    except MissingRef:
        # Nothing is committed yet.
        return Source(snapshot)
    except Exception as failure:  # noqa: BLE001  the folder is read whatever its repository is
        reason = (str(failure).splitlines() or [type(failure).__name__])[0][:200]
        return Source(snapshot, note=f"submodules are not known, since HEAD cannot be read: {reason}")
    there = {folder for path in snapshot.files for folder in _folders_around(path)} | snapshot.files.keys()
    missing = {path: sha for path, sha in committed.submodules.items() if path not in there}
    differing = sum(1 for _ in _differing_files(snapshot, committed))
    return Source(replace(snapshot, submodules={**snapshot.submodules, **missing}), differing=differing)


def _differing_files(lying: Snapshot, committed: Snapshot) -> Iterator[str]:
    """Files that are changed or gone, and new ones of a harness: what else is new may well be ignored by git."""
    for path, data in committed.files.items():
        # What could not be read is not known to differ.
        if lying.files.get(path) != data and path not in lying.skipped:
            yield path
    folders = skill_folders_of(lying.files)
    yield from (
        path
        for path in lying.files.keys() - committed.files.keys() - committed.links.keys()
        if is_harness_path(path, folders, lying.files)
    )


@dataclass
class _FolderReader:
    """One walk through a folder, of which only the descriptor is known: a name leads to what it is now."""

    root: int
    files: dict[str, bytes] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    submodules: dict[str, str] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    executables: set[str] = field(default_factory=set)
    empty: list[str] = field(default_factory=list)
    total: int = 0

    def read(self) -> Snapshot:
        """Walk, and put what was found in order."""
        left: list[tuple[str, ...]] = [()]
        while left:
            left += self._read_folder(left.pop())
        registered = registered_submodules(self.files.get(GITMODULES, b""))
        self.submodules |= {name: "" for name in self.empty if name in registered}
        return Snapshot(
            files=dict(sorted(self.files.items())),
            links=dict(sorted(self.links.items())),
            submodules=dict(sorted(self.submodules.items())),
            executables=frozenset(self.executables),
            skipped=dict(sorted(self.skipped.items())),
        )

    def _read_folder(self, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Take in the files of a folder; returns the folders in it, the last one first."""
        name = "/".join(parts)
        if len(parts) > MAX_DEPTH:
            self.skipped[name] = f"it is deeper than {MAX_DEPTH} folders"
            return []
        try:
            with _opened(self.root, parts) as folder:
                return self._take_all(folder, parts)
        except OSError as failure:
            self._skip(name or ".", failure)
            return []

    def _take_all(self, folder: int, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        if parts and any(entry.name == _GIT for entry in entries):
            self.submodules["/".join(parts)] = ""
            return []
        if parts and not entries:
            self.empty.append("/".join(parts))
        folders: list[tuple[str, ...]] = []
        for entry in entries:
            if entry.name == _GIT:
                continue
            if entry.is_dir(follow_symlinks=False):
                folders.append((*parts, entry.name))
            else:
                self._take(folder, entry, "/".join((*parts, entry.name)))
        return folders[::-1]

    def _take(self, folder: int, entry: os.DirEntry[str], name: str) -> None:
        try:
            if entry.is_symlink():
                self.links[name] = os.readlink(entry.name, dir_fd=folder)
                return
            # Looked at before it is opened: to open a pipe or a device may do something.
            reason = self._refusal(entry.stat(follow_symlinks=False))
            if not reason:
                reason = self._take_file(folder, entry.name, name)
        except OSError as failure:
            self._skip(name, failure)
            return
        if reason:
            self.skipped[name] = reason

    def _take_file(self, folder: int, own_name: str, name: str) -> str:
        """Read a regular file; the reason when it is none by now. An OSError when it has become a link."""
        descriptor = os.open(own_name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
        with os.fdopen(descriptor, "rb") as file:
            found = os.fstat(descriptor)
            reason = self._refusal(found)
            if reason:
                return reason
            data = file.read(MAX_FILE_BYTES)
        self.files[name] = data
        self.total += len(data)
        if found.st_mode & stat.S_IXUSR:
            self.executables.add(name)
        return ""

    def _refusal(self, found: os.stat_result) -> str:
        if not stat.S_ISREG(found.st_mode):
            return "it is neither a file nor a folder nor a link"
        if found.st_size > MAX_FILE_BYTES:
            return f"it has more than {MAX_FILE_BYTES // 1024**2} MB"
        is_too_much = self.total + found.st_size > MAX_TOTAL_BYTES
        return f"the folder has more than {MAX_TOTAL_BYTES // 1024**2} MB" if is_too_much else ""

    def _skip(self, name: str, failure: OSError) -> None:
        self.skipped[name] = failure.strerror or "it cannot be read"


@contextmanager
def _opened(root: int, parts: Sequence[str]) -> Iterator[int]:
    """The descriptor of a folder, reached step by step; an OSError when a link stands on the way by now."""
    descriptor = os.dup(root)
    try:
        for part in parts:
            inner = os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)


def _folders_around(path: str) -> Iterator[str]:
    folder = path.rpartition("/")[0]
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
