"""Refs: read as the files that git keeps them in, moved by git, by compare-and-swap and under our lock."""

import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from harness_repo.git.errors import BadRef, HarnessRepoError, RefExists, RepoBusy, StaleBase
from harness_repo.git.gitio import GitResult, GitRunner
from harness_repo.git.locks import WriterLock, writer_lock
from harness_repo.git.names import check_ref_name
from harness_repo.git.reffiles import check_case, read_loose_ref, read_packed_refs

ZERO = "0" * 40
BRANCHES = "refs/heads/"
TAGS = "refs/tags/"
# What others' repositories have; tags of ours are releases, so those of an imported one stand apart.
REMOTES = "refs/remotes/"
SOURCE_TAGS = "refs/source-tags/"

# What git says when a ref is not where the caller expects it.
_MOVED = ("but expected", "reference already exists", "unable to resolve")
_SYMBOLIC = b"ref: "
# Of the next command of update-ref: a branch that was made to stand for another, main say, does not move that.
_ITSELF = "option no-deref\0"
_MAX_STEPS = 5
_OBJECT_ID = re.compile(rb"[0-9a-f]{40}")


def read_ref(path: Path, name: str) -> str | None:
    """The id of the object that a full ref name stands for, None when there is no such ref.

    A loose file wins over the packed list; it is read first, so that a ref that is packed meanwhile is still found.
    HarnessRepoError when what stands there is no ref.
    """
    for _step in range(_MAX_STEPS):
        data = read_loose_ref(path, name)
        if data is None:
            return _read_packed(path, name)
        if not data.startswith(_SYMBOLIC):
            return _checked(name, data)
        name = _target(name, data.removeprefix(_SYMBOLIC))
    return None


def list_refs(git: GitRunner, prefix: str) -> dict[str, str]:
    """Name under the prefix -> id of the commit (of a tag: the tagged one), by name."""
    form = "--format=%(refname)%00%(objectname)%00%(*objectname)"
    lines = git.run("for-each-ref", form, prefix).out.decode("utf-8", "surrogateescape").split("\n")
    rows = [line.split("\0") for line in lines if line]
    return {name.removeprefix(prefix): peeled or sha for name, sha, peeled in rows}


def move_ref(
    git: GitRunner, ref: str, new: str, expected: str | None, *, check: Callable[[], object] | None = None
) -> None:
    """Move a ref from where it is expected (None: it does not exist) to `new`; `check` is called in the lock before.

    Raises StaleBase when it is elsewhere, RepoBusy when another process keeps it locked, BadRef when its name
    stands in the way of another ref's or differs from one by case alone.
    """
    with writer_lock(git.path) as lock:
        if expected is None:
            check_case(git.path, ref)
        with lock.no_collection():
            if check is not None:
                check()
            _update(git, lock, [ref], f"{_ITSELF}update {ref}\0{new}\0{expected or ZERO}\0")


def make_tag(git: GitRunner, ref: str, new: str, *, check: Callable[[], object] | None = None) -> None:
    """Make a ref that must not exist yet; RefExists when it does. Otherwise as move_ref."""
    if read_ref(git.path, ref) is not None:
        raise RefExists(f"there is a tag {ref.removeprefix(TAGS)!r} already")
    try:
        move_ref(git, ref, new, None, check=check)
    except StaleBase as failure:
        raise RefExists(f"there is a tag {ref.removeprefix(TAGS)!r} already") from failure


def delete_ref(git: GitRunner, ref: str, expected: str) -> None:
    """Remove a ref that is where it is expected; StaleBase when it is not, RepoBusy when it is locked."""
    with writer_lock(git.path) as lock:
        _update(git, lock, [ref], f"{_ITSELF}delete {ref}\0{expected}\0")


def update_refs(git: GitRunner, moves: Mapping[str, str | None]) -> None:
    """Put refs that only we write (those of remotes) where they belong, None removes.

    First all removals, then all others, each all or none: git does not take `a/b` while there is `a`.
    """
    with writer_lock(git.path) as lock:
        for commands in (
            {ref: f"delete {ref}\0\0" for ref, new in moves.items() if new is None},
            {ref: f"update {ref}\0{new}\0\0" for ref, new in moves.items() if new is not None},
        ):
            if commands:
                _update(git, lock, list(commands), "".join(commands.values()))


def point_ref(git: GitRunner, ref: str, target: str) -> None:
    """Make a ref that only we write symbolic: it stands for another, which need not exist."""
    with writer_lock(git.path) as lock:
        lock.clear_stale([ref])
        with lock.announced([ref]):
            git.run("symbolic-ref", ref, target, keep_open=(lock.descriptor,))


def drop_pointer(git: GitRunner, ref: str) -> None:
    """Remove a symbolic ref; what it stands for stays where it is."""
    with writer_lock(git.path) as lock:
        lock.clear_stale([ref])
        with lock.announced([ref]):
            git.run("symbolic-ref", "--delete", ref, keep_open=(lock.descriptor,))


def read_pointer(path: Path, ref: str) -> str | None:
    """The full name of what a symbolic ref stands for, None when there is no such ref."""
    data = read_loose_ref(path, ref) or b""
    return _target(ref, data.removeprefix(_SYMBOLIC)) if data.startswith(_SYMBOLIC) else None


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


def _read_packed(path: Path, name: str) -> str | None:
    data = read_packed_refs(path)
    end = data.find(b" " + os.fsencode(name) + b"\n")
    return _checked(name, data[end - 40 : end]) if end >= 40 else None


def _target(name: str, data: bytes) -> str:
    """The name that a symbolic ref leads to, which another's repository may have made up."""
    target = os.fsdecode(data.strip())
    try:
        check_ref_name(target)
    except BadRef:
        raise HarnessRepoError(f"the ref {name} is damaged") from None
    if not target.startswith("refs/"):
        raise HarnessRepoError(f"the ref {name} is damaged: it leads out of refs/")
    return target


def _checked(name: str, data: bytes) -> str:
    if not _OBJECT_ID.fullmatch(data):
        raise HarnessRepoError(f"the ref {name} is damaged")
    return data.decode("ascii")
