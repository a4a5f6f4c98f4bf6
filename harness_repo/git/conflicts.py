"""What people have to decide when a merge cannot: which files, how they clash, and the lines in question."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness_repo.git.blobs import read_blobs
from harness_repo.git.gitio import GitRunner
from harness_repo.git.markedfile import Clash, Sides, merge_lines
from harness_repo.git.scratch import Scratch
from harness_repo.git.unions import unite

# Bigger files are named without their hunks: nobody reads that many lines in a conflict.
_MAX_BYTES = 1_000_000
_BASE, _OURS, _THEIRS = "1", "2", "3"
_TYPE = re.compile(r"CONFLICT \(([^)]*)\)")
_MARKDOWN = ".md"
# What has gone wrong whatever git says of the contents.
_LINK_MODES = {"120000": "symbolic link", "160000": "submodule"}


@dataclass(frozen=True)
class ConflictHunk:
    """One run of lines that both sides changed, as each has it; lines end as they do in the file."""

    # 1-based, in the file as it is merged so far, where every open hunk above was decided for ours.
    line: int
    base: str
    ours: str
    theirs: str


@dataclass(frozen=True)
class FileConflict:
    """One file that people have to decide about."""

    path: str
    # content, add/add, binary, modify/delete (theirs deleted it), delete/modify (ours did), symbolic link, submodule,
    # or git's own word: rename/rename, rename/delete, file/directory, distinct modes, ...
    kind: str
    # For content and add/add of text, the open ones only; the other kinds are about the file as a whole.
    hunks: tuple[ConflictHunk, ...] = ()


@dataclass(frozen=True)
class Stage:
    """A file in conflict as one side has it; `number` is 1 for the base, 2 for ours, 3 for theirs."""

    mode: str
    sha: str
    number: str


@dataclass(frozen=True)
class Settled:
    """What became of the conflicts that git found."""

    # Path -> its content, where nobody has to decide after all.
    files: Mapping[str, bytes]
    # By path; one for each.
    open: tuple[FileConflict, ...]


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


def settle_conflicts(
    git: GitRunner, output: MergeOutput, labels: Sequence[str], scratch: Scratch | None = None
) -> Settled:
    """Unite what both sides only add to Markdown, and describe the rest.

    `labels` are what git appends to a name that it had to move out of the way; `scratch` is where it merged.
    """
    settled: dict[str, bytes] = {}
    found: dict[str, FileConflict] = {}
    shas = [stage.sha for sides in output.stages.values() for stage in sides if stage.mode not in _LINK_MODES]
    blobs = read_blobs(git, shas, scratch)
    for path, listed in output.stages.items():
        stages = {stage.number: stage for stage in listed}
        kind = _kind(stages, output.types.get(path, frozenset()))
        sides = _read_sides(stages, blobs) if kind in {"content", "add/add"} else None
        can_unite = sides is not None and _may_unite(path, stages, sides)
        parts = _merge_parts(git, sides, can_unite=can_unite)
        if can_unite and not any(isinstance(part, Clash) for part in parts):
            settled[path] = b"".join(part for part in parts if isinstance(part, bytes))
        else:
            plain = _plain(path, labels)
            is_binary = sides is not None and _is_binary(sides)
            # One path may be in the way of another kind of thing: it is one decision.
            found.setdefault(plain, FileConflict(plain, "binary" if is_binary else kind, _list_hunks(parts)))
    return Settled(settled, tuple(found[path] for path in sorted(found)))


def _may_unite(path: str, stages: Mapping[str, Stage], sides: Sides) -> bool:
    is_markdown = PurePosixPath(path).suffix.lower() == _MARKDOWN
    return is_markdown and stages.keys() == {_BASE, _OURS, _THEIRS} and not _is_binary(sides)


def _kind(stages: Mapping[str, Stage], types: frozenset[str]) -> str:
    links = [_LINK_MODES[stage.mode] for stage in stages.values() if stage.mode in _LINK_MODES]
    others = sorted(types - {"contents", "modify/delete"})
    if others:
        # Git says what it lacks to merge a submodule, of which it never has anything here.
        return "submodule" if others[0].startswith("submodule") else others[0]
    if "modify/delete" in types:
        return "modify/delete" if _OURS in stages else "delete/modify"
    if links:
        return links[0]
    return "content" if _BASE in stages else "add/add"


def _plain(path: str, labels: Sequence[str]) -> str:
    for label in labels:
        path = path.removesuffix(f"~{label}")
    return path


def _read_sides(stages: Mapping[str, Stage], blobs: Mapping[str, bytes | None]) -> Sides | None:
    """The file on each side; None when it is too big on one."""
    texts = {number: blobs[stage.sha] for number, stage in stages.items()}
    sides = [texts.get(number, b"") for number in (_BASE, _OURS, _THEIRS)]
    known = [side for side in sides if side is not None and len(side) <= _MAX_BYTES]
    return Sides(*known) if len(known) == len(sides) else None


def _is_binary(sides: Sides) -> bool:
    return any(b"\0" in side for side in sides)


def _merge_parts(git: GitRunner, sides: Sides | None, *, can_unite: bool) -> list[bytes | Clash]:
    """What is settled in a file, and what is not; nothing for one that is not merged by lines."""
    if sides is None or _is_binary(sides):
        return []
    return unite(git, sides) if can_unite else merge_lines(git, sides)


def _list_hunks(parts: Sequence[bytes | Clash]) -> tuple[ConflictHunk, ...]:
    hunks: list[ConflictHunk] = []
    line = 1
    for part in parts:
        if isinstance(part, Clash):
            hunks.append(ConflictHunk(line, *(text.decode("utf-8", "replace") for text in part)))
        line += (part.ours if isinstance(part, Clash) else part).count(b"\n")
    return tuple(hunks)
