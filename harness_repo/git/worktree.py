"""Writes a version's files into a folder, for a program that wants files: a throwaway copy, not a git checkout."""

import contextlib
import errno
import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness_repo.snapshot import Snapshot

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_worktree(snapshot: Snapshot, folder: Path) -> None:
    """Write the files and links into an existing folder; submodules become empty folders.

    What would land outside of the folder or in a .git folder is left out, and so is a link that leads out of it, and
    what stands at the path of another or below one that is no folder. Raises OSError.
    """
    root = os.open(folder, _FOLDER)
    try:
        for path, data in snapshot.files.items():
            _write_file(root, path, data, is_executable=path in snapshot.executables)
        for path in filter(_is_inside, snapshot.submodules):
            with _opened(root, path.split("/")):
                pass
        _write_links(snapshot, folder, root)
    finally:
        os.close(root)


def remove_folder(folder: Path) -> None:
    """Remove a folder and what is under it as far as possible, however deep; never raises.

    Folders that are read-only are no obstacle: programs leave them behind, Go's module cache is one.
    """
    # Inner folders are moved up before they are emptied: no path gets longer than the system takes.
    try:
        folder.chmod(0o700)
        waiting = [_empty(folder, folder)]
        while waiting:
            for inner in waiting.pop():
                waiting.append(_empty(inner, folder))
                with contextlib.suppress(OSError):
                    inner.rmdir()
        folder.rmdir()
    except OSError:
        return


def _empty(folder: Path, top: Path) -> list[Path]:
    """Remove the files of a folder and move its folders to the top, under names of their own; returns these."""
    moved = []
    with contextlib.suppress(OSError):
        for inner in list(folder.iterdir()):
            with contextlib.suppress(OSError):
                if inner.is_symlink() or not inner.is_dir():
                    inner.unlink()
                    continue
                # One that is read-only cannot be moved either.
                inner.chmod(0o700)
                moved.append(inner.rename(top / f"removed-{uuid.uuid4().hex}"))
    return moved


def _write_file(root: int, path: str, data: bytes, *, is_executable: bool) -> None:
    *folders, name = path.split("/")
    if not _is_inside(path):
        return
    with _opened(root, folders) as parent:
        if parent is None:
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(name, flags, 0o755 if is_executable else 0o644, dir_fd=parent)
        except FileExistsError:
            return
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if is_executable:
                os.fchmod(descriptor, 0o755)


def _write_links(snapshot: Snapshot, folder: Path, root: int) -> None:
    """Make all links, then take away those that lead out: a link may lead through another one."""
    made = []
    for path, target in snapshot.links.items():
        *folders, name = path.split("/")
        if not (_is_inside(path) and target and "\0" not in target):
            continue
        with _opened(root, folders) as parent, contextlib.suppress(FileExistsError):
            if parent is not None:
                os.symlink(target, name, dir_fd=parent)
                made.append(folder / path)
    for link in [link for link in made if not _stays_inside(link, folder)]:
        link.unlink()


@contextlib.contextmanager
def _opened(root: int, folders: Sequence[str]) -> Iterator[int | None]:
    """The folder below the root, made if need be; None when something else stands on the way, a link too."""
    descriptor: int | None = os.dup(root)
    try:
        for name in folders:
            above, descriptor = descriptor, None
            try:
                descriptor = _enter(above, name)
            except (NotADirectoryError, FileNotFoundError):
                break
            finally:
                if above is not None:
                    os.close(above)
        yield descriptor
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _enter(above: int | None, name: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=above)
    try:
        return os.open(name, _FOLDER, dir_fd=above)
    except OSError as failure:
        if failure.errno == errno.ELOOP:
            raise NotADirectoryError(failure.errno, "it is a link", name) from None
        raise


def _stays_inside(link: Path, folder: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder.resolve())
    # Python 3.11 and 3.12 say so of links in a circle, later ones resolve them.
    except (RuntimeError, OSError):
        return False


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return "\0" not in path and not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)
