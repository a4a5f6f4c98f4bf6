"""What is wrong with what stands in a tree, before any file is read: links, submodules, names that clash."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.textfile import MAX_FILE_BYTES
from harness_repo.git.errors import BadPath
from harness_repo.git.names import MAX_PATH_BYTES, check_path
from harness_repo.snapshot import Snapshot

GITMODULES = ".gitmodules"

_SUBMODULE_PATH = re.compile(r"^[ \t]*path[ \t]*=(.*)$", re.MULTILINE)
_DRIVE = re.compile(r"[A-Za-z]:")
# What is followed in thought: more is nobody's honest link.
_MOST_HOPS = 10
_LONGEST_TARGET = 1024
_ROOT = "."


def entry_problems(snapshot: Snapshot) -> Iterator[Problem]:
    """Problems of links, submodules, unreadable entries and names, each of the entry as a whole."""
    paths = [*snapshot.files, *snapshot.links, *snapshot.submodules]
    yield from _path_problems(sorted(paths))
    paths = [path for path in paths if is_readable_path(path)]
    yield from _clash_problems(sorted(paths))
    if snapshot.links:
        yield from _link_problems(snapshot, paths)
    if snapshot.submodules:
        yield from _submodule_problems(snapshot)
    for path, reason in sorted(snapshot.skipped.items()):
        yield error(path, 0, "unreadable", f"it is not read: {reason}")


def registered_submodules(data: bytes) -> frozenset[str]:
    """The paths that a .gitmodules file gives to submodules."""
    text = data[:MAX_FILE_BYTES].decode("utf-8", "surrogateescape").replace("\r", "")
    return frozenset(path.strip().strip('"').rstrip("/") for path in _SUBMODULE_PATH.findall(text))


def is_readable_path(path: str) -> bool:
    """Whether a path is short enough to be looked at; what is longer is a problem of its own, and not read."""
    return len(path) <= MAX_PATH_BYTES


def _path_problems(paths: Sequence[str]) -> Iterator[Problem]:
    for path in paths:
        if not _is_usable(path):
            hint = "git on other systems, and proposals here, refuse it"
            yield error(
                path, 0, "path_name", "the path is too long, or has characters that do not travel", hint
            )


def _is_usable(path: str) -> bool:
    try:
        return check_path(path).isprintable()
    except (BadPath, UnicodeError):
        return False


def _clash_problems(paths: Sequence[str]) -> Iterator[Problem]:
    """Names that one system keeps apart and another takes for the same; the first in order is the one that stays."""
    every = {prefix for path in paths for prefix in _prefixes(path)}
    if len({_fold(name) for name in every}) == len(every):
        return
    first: dict[str, str] = {}
    told: set[str] = set()
    for path in paths:
        for prefix in _prefixes(path):
            kept = first.setdefault(_fold(prefix), prefix)
            if kept != prefix:
                if prefix not in told:
                    told.add(prefix)
                    message = f"{prefix!r} and {kept!r} differ in nothing but case"
                    yield error(path, 0, "case_clash", message, "some systems can keep only one of them")
                break


def _prefixes(path: str) -> Iterator[str]:
    """The folders around a path, outermost first, and the path itself."""
    at = path.find("/")
    while at >= 0:
        yield path[:at]
        at = path.find("/", at + 1)
    yield path


def _fold(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()


def _submodule_problems(snapshot: Snapshot) -> Iterator[Problem]:
    registered = registered_submodules(snapshot.files.get(GITMODULES, b""))
    for path in sorted(snapshot.submodules):
        if path in registered:
            hint = "copy what is needed into this repository"
            yield warning(path, 0, "submodule", "a submodule: what is in it is not read", hint)
        else:
            message = f"a link to another repository that {GITMODULES} does not name: nobody can fetch it"
            yield error(path, 0, "submodule_unregistered", message, "remove it, or add it as a submodule")


def _link_problems(snapshot: Snapshot, paths: Sequence[str]) -> Iterator[Problem]:
    known = {prefix for path in paths for prefix in _prefixes(path)}
    for path, target in sorted(snapshot.links.items()):
        shown = repr(target[:200])
        end = _follow(snapshot, path, target)
        if end is None:
            hint = "nothing outside of the harness is read"
            yield error(path, 0, "link_outside", f"a symbolic link out of the tree, to {shown}", hint)
        elif end == _ROOT or end in known or any(end.startswith(f"{name}/") for name in snapshot.submodules):
            hint = "put the content here"
            yield warning(
                path, 0, "link_not_followed", f"a symbolic link to {shown}: it is not followed", hint
            )
        else:
            yield error(path, 0, "link_dangling", f"a symbolic link to {shown}, which is not there")


def _follow(snapshot: Snapshot, path: str, target: str) -> str | None:
    """Where a link leads in the end, without looking at any disk; None: out of the tree, "": round in circles."""
    left = _parts_of(path, target)
    at: list[str] = []
    hops = 1
    while left:
        part = left.pop(0)
        if part in ("", "."):
            continue
        if part == "/" or (part == ".." and not at):
            return None
        if part == "..":
            at.pop()
            continue
        at.append(part)
        further = snapshot.links.get("/".join(at))
        if further is not None:
            hops += 1
            if hops > _MOST_HOPS:
                return ""
            left = _parts_of("/".join(at), further) + left
            at = []
    return "/".join(at) or _ROOT


def _parts_of(path: str, target: str) -> list[str]:
    """The steps from the root to a link's target; an absolute one starts with "/"."""
    if target.startswith(("/", "\\")) or _DRIVE.match(target):
        return ["/"]
    is_possible = 0 < len(target) <= _LONGEST_TARGET
    return [*path.split("/")[:-1], *target.split("/")] if is_possible else ["\0"]
