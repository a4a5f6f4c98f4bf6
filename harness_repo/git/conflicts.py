"""What people have to decide when a merge cannot: which files, how they clash, and the lines in question."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from types import MappingProxyType

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
class FileSides:
    """A file as each side of a merge has it; None where it has none, or nothing that is shown: too big, or no file."""

    base: bytes | None = None
    ours: bytes | None = None
    theirs: bytes | None = None

    @property
    def is_text(self) -> bool:
        """Whether something is there to be read, and all of it is UTF-8 text."""
        known = [side for side in (self.base, self.ours, self.theirs) if side is not None]
        return bool(known) and all(_is_utf8(side) for side in known)


@dataclass(frozen=True)
class FileConflict:
    """One file that people have to decide about."""

    path: str
    # content, add/add, binary, modify/delete (theirs deleted it), delete/modify (ours did), symbolic link, submodule,
    # or git's own word: rename/rename, rename/delete, file/directory, distinct modes, ...
    kind: str
    # For content and add/add of text, the open ones only; the other kinds are about the file as a whole.
    hunks: tuple[ConflictHunk, ...] = ()
    # 64 hex digits, of the path and its three versions: the same wherever these meet again, whichever side is ours.
    key: str = ""
    sides: FileSides = field(default_factory=FileSides)
    # The file from top to bottom where it is merged by lines: what is settled, and what is in conflict.
    parts: tuple[bytes | Clash, ...] = ()


@dataclass(frozen=True)
class Stage:
    """A file in conflict as one side has it; `number` is 1 for the base, 2 for ours, 3 for theirs."""

    mode: str
    sha: str
    number: str


@dataclass(frozen=True)
class Settled:
    """What became of the conflicts that git found."""

    # Path -> its content (None: not there), where nobody has to decide, or somebody has decided.
    files: Mapping[str, bytes | None]
    # By path; one for each.
    open: tuple[FileConflict, ...]
    # Those that a known resolution settled, by path.
    known: tuple[FileConflict, ...] = ()


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
    for record in fields[:end]:
        head, _, path = record.partition("\t")
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
    git: GitRunner,
    output: MergeOutput,
    labels: Sequence[str],
    scratch: Scratch | None = None,
    resolutions: Mapping[str, bytes | None] = MappingProxyType({}),
) -> Settled:
    """Unite what both sides only add to Markdown, take what people decided by the conflict's key, describe the rest.

    `labels` are what git appends to a name that it had to move out of the way; `scratch` is where it merged.
    """
    files: dict[str, bytes | None] = {}
    found: dict[str, list[FileConflict]] = {"open": [], "known": []}
    shas = [stage.sha for sides in output.stages.values() for stage in sides if stage.mode not in _LINK_MODES]
    blobs = read_blobs(git, shas, scratch)
    for path, names in _group(output.stages, labels).items():
        stages = {stage.number: stage for name in names for stage in output.stages[name]}
        types = frozenset(kind for name in names for kind in output.types.get(name, ()))
        conflict, united = _describe(git, path, stages, _kind(stages, types), blobs)
        if united is None and conflict.key not in resolutions:
            found["open"].append(conflict)
            continue
        # What git moved out of the way is where it belongs now, or gone.
        files |= {name: None for name in names if name != path}
        files[path] = resolutions[conflict.key] if united is None else united
        if united is None:
            found["known"].append(conflict)
    return Settled(files, _by_path(found["open"]), _by_path(found["known"]))


def _by_path(conflicts: Sequence[FileConflict]) -> tuple[FileConflict, ...]:
    return tuple(sorted(conflicts, key=lambda conflict: conflict.path))


def _group(stages: Mapping[str, Sequence[Stage]], labels: Sequence[str]) -> dict[str, list[str]]:
    """Path -> the names that it has in the merge: one may be in the way of another kind of thing."""
    groups: dict[str, list[str]] = {}
    for name in stages:
        groups.setdefault(_plain(name, labels), []).append(name)
    return groups


def _describe(
    git: GitRunner, path: str, stages: Mapping[str, Stage], kind: str, blobs: Mapping[str, bytes | None]
) -> tuple[FileConflict, bytes | None]:
    """The conflict, and what the file becomes where nobody has to decide after all."""
    sides = _read_sides(stages, blobs) if kind in {"content", "add/add"} else None
    can_unite = sides is not None and _may_unite(path, stages, sides)
    parts = _merge_parts(git, sides, can_unite=can_unite)
    if can_unite and not any(isinstance(part, Clash) for part in parts):
        return FileConflict(path, kind), b"".join(part for part in parts if isinstance(part, bytes))
    if sides is not None and _is_binary(sides):
        kind = "binary"
    versions = FileSides(*(_content(stages.get(number), blobs) for number in (_BASE, _OURS, _THEIRS)))
    key = _key(path, stages)
    return FileConflict(path, kind, _list_hunks(parts), key, versions, tuple(parts)), None


def _key(path: str, stages: Mapping[str, Stage]) -> str:
    known = {number: f"{stage.mode} {stage.sha}" for number, stage in stages.items()}
    base, *sides = (known.get(number, "-") for number in (_BASE, _OURS, _THEIRS))
    return hashlib.sha256(
        "\0".join([path, base, *sorted(sides)]).encode("utf-8", "surrogateescape")
    ).hexdigest()


def _content(stage: Stage | None, blobs: Mapping[str, bytes | None]) -> bytes | None:
    if stage is None or stage.mode in _LINK_MODES:
        return None
    content = blobs[stage.sha]
    return content if content is not None and len(content) <= _MAX_BYTES else None


def _is_utf8(data: bytes) -> bool:
    try:
        return "\0" not in data.decode()
    except UnicodeDecodeError:
        return False


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
