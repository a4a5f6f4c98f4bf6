"""Writes a version's files into a folder, for a program that wants files: a throwaway copy, not a git checkout."""

import os
import shutil
from pathlib import Path

from harness_repo.snapshot import Snapshot


def write_worktree(snapshot: Snapshot, folder: Path) -> None:
    """Write the files and links into an existing folder; submodules become empty folders.

    What would land outside of the folder or in a .git folder is left out, and so is a link that leads out of it.
    Raises OSError.
    """
    for path, data in snapshot.files.items():
        if _is_inside(path):
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
            if path in snapshot.executables:
                target.chmod(0o755)
    for path in filter(_is_inside, snapshot.submodules):
        (folder / path).mkdir(parents=True, exist_ok=True)
    _write_links(snapshot, folder)


def remove_folder(folder: Path) -> None:
    """Remove a folder and what is under it as far as possible; a folder that is read-only is no obstacle."""
    shutil.rmtree(folder, ignore_errors=True)
    if not folder.exists():
        return
    # Programs leave read-only folders behind; Go's module cache is one.
    folder.chmod(0o700)
    for parent, names, _ in os.walk(folder):
        for name in names:
            inner = Path(parent, name)
            if not inner.is_symlink():
                inner.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _write_links(snapshot: Snapshot, folder: Path) -> None:
    """Make all links, then take away those that lead out: a link may lead through another one."""
    made = []
    for path, target in snapshot.links.items():
        link = folder / path
        if _is_inside(path) and target and "\0" not in target:
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(target)
            made.append(link)
    for link in [link for link in made if not _stays_inside(link, folder)]:
        link.unlink()


def _stays_inside(link: Path, folder: Path) -> bool:
    try:
        return link.resolve().is_relative_to(folder.resolve())
    # Python 3.11 and 3.12 say so of links in a circle, later ones resolve them.
    except (RuntimeError, OSError):
        return False


def _is_inside(path: str) -> bool:
    parts = path.split("/")
    return "\0" not in path and not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)
