"""What is wrong with what stands in a tree, before any file is read: links, submodules, names that clash."""

import re
import unicodedata
from collections.abc import Iterator, Sequence

from harness_repo.format.links import link_problems
from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.textfile import MAX_FILE_BYTES
from harness_repo.git.errors import BadPath
from harness_repo.git.names import MAX_PATH_BYTES, check_path
from harness_repo.snapshot import Snapshot

GITMODULES = ".gitmodules"

_SUBMODULE_PATH = re.compile(r"^[ \t]*path[ \t]*=(.*)$", re.MULTILINE)


def entry_problems(snapshot: Snapshot) -> Iterator[Problem]:
    """Problems of links, submodules, unreadable entries and names, each of the entry as a whole."""
    paths = [*snapshot.files, *snapshot.links, *snapshot.submodules]
    yield from _path_problems(sorted(paths))
    paths = [path for path in paths if is_readable_path(path)]
    yield from _clash_problems(sorted(paths))
    if snapshot.links:
        yield from link_problems(snapshot, paths)
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
    # Folded name -> the name that stays, and what is below it.
    root: _Folded = {}
    told: set[str] = set()
    for path in paths:
        below = root
        parts = path.split("/")
        for number, part in enumerate(parts):
            kept, inner = below.setdefault(fold_name(part), (part, {}))
            if kept != part:
                around = "".join(f"{part}/" for part in parts[:number])
                name = around + part
                if name not in told:
                    told.add(name)
                    hint = "some systems can keep only one of them"
                    yield error(path, 0, "case_clash", _clash(name, around + kept), hint)
                break
            below = inner


_Folded = dict[str, tuple[str, "_Folded"]]


def _clash(name: str, kept: str) -> str:
    """In what two names differ that are one elsewhere; written out where they would look the same."""
    if name.casefold() == kept.casefold():
        return f"{name!r} and {kept!r} differ in nothing but case"
    is_spelling = unicodedata.normalize("NFC", name) == unicodedata.normalize("NFC", kept)
    what = "how an accent is written" if is_spelling else "case and how an accent is written"
    return f"{name!a} and {kept!a} differ in nothing but {what} (Unicode NFC and NFD)"


def fold_name(name: str) -> str:
    """The name as a system sees it that tells apart neither capitals nor ways to write an accent."""
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
