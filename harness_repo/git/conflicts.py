"""What people have to decide when a merge cannot: which files, how they clash, and the lines in question."""

import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness_repo.git.gitio import GitRunner
from harness_repo.git.objects import read_blobs

# Bigger files are named without their hunks: nobody reads that many lines in a conflict.
_MAX_BYTES = 1_000_000
_BASE, _OURS, _THEIRS = "1", "2", "3"
_TYPE = re.compile(r"CONFLICT \(([^)]*)\)")
_MARKS = re.compile(rb"^(<+|\|+|=+|>+)", re.MULTILINE)
# What has gone wrong whatever git says of the contents.
_LINK_MODES = {"120000": "symbolic link", "160000": "submodule"}


@dataclass(frozen=True)
class ConflictHunk:
    """One run of lines that both sides changed, as each has it; lines end as they do in the file."""

    # 1-based, in the file as it is merged so far, where every hunk above was decided for ours.
    line: int
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class FileConflict:
    """One file that people have to decide about."""

    path: str
    # content, add/add, binary, modify/delete (theirs deleted it), delete/modify (ours did), symbolic link, submodule,
    # or git's own word: rename/rename, rename/delete, file/directory, ...
    kind: str
    # For content and add/add of text; the other kinds are about the file as a whole.
    hunks: tuple[ConflictHunk, ...] = ()


@dataclass(frozen=True)
class Stage:
    """A file in conflict as one side has it; `number` is 1 for the base, 2 for ours, 3 for theirs."""

    mode: str
    sha: str
    number: str


@dataclass(frozen=True)
class MergeOutput:
    """What git merge-tree says of a merge that stays open."""

    # Path -> what each side has there.
    stages: Mapping[str, Sequence[Stage]]
    # Path -> git's words for what is wrong with it.
    types: Mapping[str, frozenset[str]]


def parse_conflicts(fields: Sequence[str]) -> MergeOutput:
    """Read what follows the tree in the output of `git merge-tree -z`."""
    stages: dict[str, list[Stage]] = {}
    end = fields.index("") if "" in fields else len(fields)
    for field in fields[:end]:
        head, _, path = field.partition("\t")
        stages.setdefault(path, []).append(Stage(*head.split(" ")))
    types: dict[str, set[str]] = {}
    rest = list(fields[end + 1 :])
    while len(rest) > 1:
        count = int(rest[0])
        paths, kind = rest[1 : count + 1], _TYPE.search(rest[count + 1])
        rest = rest[count + 3 :]
        for path in paths if kind else ():
            types.setdefault(path, set()).add(kind[1] if kind else "")
    return MergeOutput(stages, {path: frozenset(found) for path, found in types.items()})


def describe_conflicts(
    git: GitRunner, output: MergeOutput, labels: Sequence[str], env: Mapping[str, str] | None = None
) -> tuple[FileConflict, ...]:
    """The conflicts by path; `labels` are what git appends to a name that it had to move out of the way.

    `env` is the environment that the merge was made in.
    """
    found = []
    for path, sides in output.stages.items():
        stages = {stage.number: stage for stage in sides}
        kind = _kind(stages, output.types.get(path, frozenset()))
        hunks = _read_hunks(git, stages, env) if kind in {"content", "add/add"} else ()
        plain = _plain(path, labels)
        found.append(FileConflict(plain, "binary" if hunks is None else kind, hunks or ()))
    return tuple(sorted(found, key=lambda conflict: conflict.path))


def _kind(stages: Mapping[str, Stage], types: frozenset[str]) -> str:
    links = [_LINK_MODES[stage.mode] for stage in stages.values() if stage.mode in _LINK_MODES]
    others = sorted(types - {"contents", "modify/delete"})
    if others:
        return others[0]
    if "modify/delete" in types:
        return "modify/delete" if _OURS in stages else "delete/modify"
    if links:
        return links[0]
    return "content" if _BASE in stages else "add/add"


def _plain(path: str, labels: Sequence[str]) -> str:
    for label in labels:
        path = path.removesuffix(f"~{label}")
    return path


def _read_hunks(
    git: GitRunner, stages: Mapping[str, Stage], env: Mapping[str, str] | None
) -> tuple[ConflictHunk, ...] | None:
    """The hunks of a text file; none when it is too big, None when it is no text."""
    blobs = read_blobs(git, [stage.sha for stage in stages.values()], env)
    sides = {number: blobs[stage.sha] for number, stage in stages.items()}
    base, ours, theirs = (sides.get(number, b"") for number in (_BASE, _OURS, _THEIRS))
    if max(len(base), len(ours), len(theirs)) > _MAX_BYTES:
        return ()
    if any(b"\0" in side for side in (base, ours, theirs)):
        return None
    # Longer than any run of the signs in the files, so that no line of theirs can be taken for a mark.
    size = 1 + max((len(run) for side in (base, ours, theirs) for run in _MARKS.findall(side)), default=6)
    return _parse_hunks(_merge_file(git, base, ours, theirs, size), size)


def _merge_file(git: GitRunner, base: bytes, ours: bytes, theirs: bytes, size: int) -> bytes:
    """The file with the marks of its conflicts; git merge-file works on files only."""
    with tempfile.TemporaryDirectory(prefix="harness-merge-") as folder:
        names = [Path(folder, name) for name in ("ours", "base", "theirs")]
        for name, data in zip(names, (ours, base, theirs), strict=True):
            # A last line without an end would run into the mark.
            name.write_bytes(data if not data or data.endswith(b"\n") else data + b"\n")
        arguments = ("merge-file", "-p", "--zdiff3", f"--marker-size={size}", *map(str, names))
        # The exit code is the number of conflicts, at most 127.
        return git.run(*arguments, allowed=range(128)).out


def _parse_hunks(data: bytes, size: int) -> tuple[ConflictHunk, ...]:
    # By the sign that opens a part; the closing one ends the hunk.
    parts: dict[bytes, list[bytes]] = {}
    hunks: list[ConflictHunk] = []
    line, part = 1, b""
    for text in data.splitlines(keepends=True):
        sign = text[:1] if _is_mark(text, size) else b""
        if sign == b">":
            hunks.append(_hunk(line, parts))
            line, part = line + len(parts.get(b"<", ())), b""
        elif sign:
            parts = parts if sign != b"<" else {}
            part = sign
        elif part:
            parts.setdefault(part, []).append(text)
        else:
            line += 1
    return tuple(hunks)


def _is_mark(text: bytes, size: int) -> bool:
    return text[:1] in (b"<", b"|", b"=", b">") and text.startswith(text[:1] * size)


def _hunk(line: int, parts: Mapping[bytes, Sequence[bytes]]) -> ConflictHunk:
    base, ours, theirs = (
        b"".join(parts.get(sign, ())).decode("utf-8", "replace") for sign in (b"|", b"<", b"=")
    )
    return ConflictHunk(line, base=base, ours=ours, theirs=theirs)
