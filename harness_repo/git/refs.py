"""Refs: read as the files that git keeps them in, moved by git, by compare-and-swap and under our lock."""

import os
import re
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness_repo.git.errors import BadRef, HarnessRepoError, RefExists, RepoBusy, StaleBase
from harness_repo.git.gitio import GitResult, GitRunner
from harness_repo.git.locks import WriterLock, writer_lock

ZERO = "0" * 40
BRANCHES = "refs/heads/"
TAGS = "refs/tags/"

# What git says when a ref is not where the caller expects it.
_MOVED = ("but expected", "reference already exists", "unable to resolve")
_SYMBOLIC = b"ref: "
_MAX_STEPS = 5
_OBJECT_ID = re.compile(rb"[0-9a-f]{40}")


def read_ref(path: Path, name: str) -> str | None:
    """The id of the object that a full ref name stands for, None when there is no such ref.

    A loose file wins over the packed list; it is read first, so that a ref that is packed meanwhile is still found.
    """
    for _step in range(_MAX_STEPS):
        data = _read_loose(path, name)
        if data is None:
            return _read_packed(path, name)
        if not data.startswith(_SYMBOLIC):
            return _checked(name, data)
        name = os.fsdecode(data.removeprefix(_SYMBOLIC))
    return None


def list_refs(git: GitRunner, prefix: str) -> dict[str, str]:
    """Name under the prefix -> id of the commit (of a tag: the tagged one), by name."""
    form = "--format=%(refname)%00%(objectname)%00%(*objectname)"
    lines = git.run("for-each-ref", form, prefix).out.decode("utf-8", "surrogateescape").splitlines()
    rows = [line.split("\0") for line in lines]
    return {name.removeprefix(prefix): peeled or sha for name, sha, peeled in rows}


def move_ref(git: GitRunner, ref: str, new: str, expected: str | None) -> None:
    """Move a ref from where it is expected (None: it does not exist) to `new`.

    Raises StaleBase when it is elsewhere, RepoBusy when another process keeps it locked, BadRef when its name
    stands in the way of another ref's or differs from one by case alone.
    """
    with writer_lock(git.path) as lock:
        if expected is None:
            _check_case(git.path, ref)
        _update(git, lock, [ref], f"update {ref}\0{new}\0{expected or ZERO}\0")


def make_tag(git: GitRunner, ref: str, new: str) -> None:
    """Make a ref that must not exist yet; RefExists when it does. Otherwise as move_ref."""
    if read_ref(git.path, ref) is not None:
        raise RefExists(f"there is a tag {ref.removeprefix(TAGS)!r} already")
    try:
        move_ref(git, ref, new, None)
    except StaleBase as failure:
        raise RefExists(f"there is a tag {ref.removeprefix(TAGS)!r} already") from failure


def delete_ref(git: GitRunner, ref: str, expected: str) -> None:
    """Remove a ref that is where it is expected; StaleBase when it is not, RepoBusy when it is locked."""
    with writer_lock(git.path) as lock:
        _update(git, lock, [ref], f"delete {ref}\0{expected}\0")


def update_refs(git: GitRunner, moves: Mapping[str, str | None]) -> None:
    """Put refs that only we write (those of remotes) where they belong, None removes; all or none."""
    if not moves:
        return
    commands = [f"update {ref}\0{new}\0\0" if new else f"delete {ref}\0\0" for ref, new in moves.items()]
    with writer_lock(git.path) as lock:
        _update(git, lock, list(moves), "".join(commands))


def _update(git: GitRunner, lock: WriterLock, refs: Sequence[str], commands: str) -> None:
    lock.clear_stale(refs)
    result = _run_update(git, lock, refs, commands)
    if result.code:
        raise _failure(", ".join(refs), result)


def _run_update(git: GitRunner, lock: WriterLock, refs: Sequence[str], commands: str) -> GitResult:
    stdin = commands.encode("utf-8", "surrogateescape")
    with lock.announced(refs):
        arguments = ("update-ref", "-z", "--stdin")
        return git.run(*arguments, stdin=stdin, allowed=(0, 128), keep_open=(lock.descriptor,))


def _is_locked(result: GitResult) -> bool:
    return result.code != 0 and ".lock" in result.error and "Unable to create" in result.error


def _failure(ref: str, result: GitResult) -> HarnessRepoError:
    name = ref.removeprefix(BRANCHES).removeprefix(TAGS)
    if _is_locked(result):
        return RepoBusy(f"{name} is locked by another process")
    if any(sign in result.error for sign in _MOVED):
        return StaleBase(f"{name} has moved")
    return BadRef(f"cannot move {name!r}: {result.error}")


def _read_loose(path: Path, name: str) -> bytes | None:
    try:
        data = (path / name).read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as failure:
        raise HarnessRepoError(f"cannot read the ref {name}: {failure.strerror}") from failure
    return data.rstrip(b"\n") or None


def _read_packed(path: Path, name: str) -> str | None:
    try:
        data = (path / "packed-refs").read_bytes()
    except FileNotFoundError:
        return None
    end = data.find(b" " + os.fsencode(name) + b"\n")
    return _checked(name, data[end - 40 : end]) if end >= 40 else None


def _checked(name: str, data: bytes) -> str:
    if not _OBJECT_ID.fullmatch(data):
        raise HarnessRepoError(f"the ref {name} is damaged")
    return data.decode("ascii")


def _check_case(path: Path, ref: str) -> None:
    """Refuse a new name that a file system without case, or of another normal form, takes for an existing one."""
    folder = path
    for part in ref.split("/"):
        for name in _names(folder):
            if name != part and _fold(name) == _fold(part):
                raise BadRef(f"{ref!r} differs from an existing name by case alone: {name!r}")
        folder /= part
    for name in _packed_names(path):
        if _clashes(name, ref):
            raise BadRef(f"{ref!r} differs from an existing name by case alone: {name!r}")


def _clashes(name: str, ref: str) -> bool:
    """Whether the first part in which two names differ is the same but for its case."""
    pairs = zip(name.split("/"), ref.split("/"), strict=False)
    differing = next(((one, two) for one, two in pairs if one != two), None)
    return differing is not None and _fold(differing[0]) == _fold(differing[1])


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _packed_names(path: Path) -> list[str]:
    try:
        lines = (path / "packed-refs").read_bytes().decode("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return []
    return [line.partition(" ")[2] for line in lines if line[:1] not in ("#", "^")]


def _fold(name: str) -> str:
    return name.lower() if name.isascii() else unicodedata.normalize("NFC", name).casefold()
