"""Finds the git repository of a folder that may be anybody's: only one that is its own, as both sides say."""

import os
import re
from pathlib import Path

_GIT = ".git"
_LONGEST_LINE = 4096
_LONGEST_CONFIG = 64 * 1024
_WORKTREE = re.compile(r"^[ \t]*worktree[ \t]*=[ \t]*(.+?)[ \t]*$", re.MULTILINE)

# The folders of a bare repository; with others beside them it holds more than a repository.
_OWN_FOLDERS = frozenset({
    "branches", "custom_hooks", "hooks", "info", "lfs", "logs", "modules", "objects", "refs", "reftable", "worktrees",
})  # fmt: skip
# What nobody puts into a bare repository.
_OTHER_FILES = frozenset({_GIT, ".gitmodules", "skill.md", "harness.yaml"})


def looks_like_git(place: Path) -> bool:
    """Whether HEAD, objects and refs stand in a folder, as such and not as links to another's."""
    try:
        parts = (place / "HEAD", place / "objects", place / "refs")
        is_complete = parts[0].is_file() and parts[1].is_dir() and parts[2].is_dir()
        return is_complete and not any(part.is_symlink() for part in parts[1:])
    except (OSError, ValueError):
        return False


def is_bare_repository(place: Path) -> bool:
    """Whether a folder is a bare repository, and nothing else: what stands beside it would not be read."""
    if not looks_like_git(place):
        return False
    try:
        with os.scandir(place) as entries:
            return not any(_is_foreign(entry) for entry in entries)
    except OSError:
        return False


def _is_foreign(entry: os.DirEntry[str]) -> bool:
    if entry.is_dir():
        return entry.name not in _OWN_FOLDERS
    return entry.name.lower() in _OTHER_FILES


def find_git_folder(place: Path) -> Path | None:
    """The repository behind the .git of a folder; None when there is none, or one that does not know the folder."""
    inner = place / _GIT
    try:
        if inner.is_symlink():
            return None
        found = _follow_file(place, inner) if inner.is_file() else inner
    except (OSError, ValueError):
        # No address at all: too long, or with a NUL.
        return None
    return found if found is not None and looks_like_git(found) else None


def _follow_file(place: Path, file: Path) -> Path | None:
    """What a .git file names, if it is a repository that names this folder: a further worktree, or a submodule."""
    named = place / _read_text(file, _LONGEST_LINE).strip().removeprefix("gitdir:").strip()
    back, shared = named / "gitdir", named / "commondir"
    if back.is_file() and shared.is_file():
        common = (named / _read_text(shared, _LONGEST_LINE).strip()).resolve()
        is_ours = _is_same(named / _read_text(back, _LONGEST_LINE).strip(), file)
        return common if is_ours and named.resolve().parent == common / "worktrees" else None
    config = named / "config"
    worktree = _WORKTREE.search(_read_text(config, _LONGEST_CONFIG)) if config.is_file() else None
    is_ours = worktree is not None and _is_same(named / worktree.group(1).strip('"'), place)
    return named.resolve() if is_ours else None


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


def _read_text(path: Path, most: int) -> str:
    with path.open("rb") as file:
        return file.read(most).decode("utf-8", "surrogateescape")
