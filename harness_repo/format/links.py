"""Where symbolic links of a tree lead, found without looking at any disk; none is ever followed to read it."""

import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, field

from harness_repo.format.problems import Problem, error, warning
from harness_repo.snapshot import Snapshot

_DRIVE = re.compile(r"[A-Za-z]:")
# More is nobody's honest link.
_MOST_HOPS = 10
_LONGEST_TARGET = 1024


@dataclass(slots=True)
class _Node:
    """A name in the tree of all paths."""

    inner: dict[str, "_Node"] = field(default_factory=dict)
    # The path of the link that stands here.
    link: str = ""
    is_submodule: bool = False


@dataclass(frozen=True)
class _End:
    """Where a link leads in the end, after so many links; `parts` is None where it leads nowhere."""

    parts: tuple[str, ...] | None = None
    hops: int = 1
    is_outside: bool = False


_NOWHERE = _End()
_OUTSIDE = _End(is_outside=True)

# A walk asks for the ends of the links that it meets.
_Walk = Generator[str, _End | None, _End]


def link_problems(snapshot: Snapshot, paths: Iterable[str]) -> Iterator[Problem]:
    """A problem for each link; `paths` are those of all that stands in the tree."""
    tree = _build_tree(snapshot, paths)
    ends: dict[str, _End] = {}
    for path, target in sorted(snapshot.links.items()):
        shown = repr(target[:200])
        end = _end_of(path, snapshot, tree, ends)
        if end.is_outside:
            hint = "nothing outside of the harness is read"
            yield error(path, 0, "link_outside", f"a symbolic link out of the tree, to {shown}", hint)
        elif end.parts is not None and _is_there(tree, end.parts):
            hint = "put the content here"
            yield warning(
                path, 0, "link_not_followed", f"a symbolic link to {shown}: it is not followed", hint
            )
        else:
            hint = "remove it, or put the content here"
            yield error(path, 0, "link_dangling", f"a symbolic link to {shown}, which is not there", hint)


def _build_tree(snapshot: Snapshot, paths: Iterable[str]) -> _Node:
    root = _Node()
    for path in paths:
        node = root
        for part in path.split("/"):
            node = node.inner.setdefault(part, _Node())
        node.link = path if path in snapshot.links else ""
        node.is_submodule = path in snapshot.submodules
    return root


def _is_there(tree: _Node, parts: Iterable[str]) -> bool:
    """Whether a path stands in the tree; what is inside a submodule is taken to be there."""
    node = tree
    for part in parts:
        if part not in node.inner:
            return False
        node = node.inner[part]
        if node.is_submodule:
            return True
    return True


def _end_of(path: str, snapshot: Snapshot, tree: _Node, ends: dict[str, _End]) -> _End:
    """The end of a link; those of the links on the way are found first, each once, and kept in `ends`."""
    if path in ends:
        return ends[path]
    # A stack: each walk waits for the next one.
    walks = {path: _walk(path, snapshot.links[path], tree)}
    given: _End | None = None
    while True:
        current = next(reversed(walks))
        try:
            asked = walks[current].send(given)
        except StopIteration as done:
            given = ends[current] = done.value
            del walks[current]
            if not walks:
                return ends[path]
            continue
        if asked in walks:
            # Round in circles: a link that waits for itself.
            given = _NOWHERE
        elif asked in ends:
            given = ends[asked]
        else:
            walks[asked] = _walk(asked, snapshot.links[asked], tree)
            given = None


def _walk(path: str, target: str, tree: _Node) -> _Walk:
    """Go from the root along a target, name by name."""
    if target.startswith(("/", "\\")) or _DRIVE.match(target):
        return _OUTSIDE
    if not 0 < len(target) <= _LONGEST_TARGET:
        return _NOWHERE
    at: list[str] = []
    nodes: list[_Node | None] = [tree]
    hops = 1
    for part in [*path.split("/")[:-1], *target.split("/")]:
        if part == ".." and not at:
            return _OUTSIDE
        if part == "..":
            at.pop()
            nodes.pop()
        elif part not in ("", "."):
            at.append(part)
            nodes.append(_inner(nodes[-1], part))
        node = nodes[-1]
        if node is None or not node.link:
            continue
        end = (yield node.link) or _NOWHERE
        hops += end.hops
        if end.parts is None or hops > _MOST_HOPS:
            return _OUTSIDE if end.is_outside else _NOWHERE
        at, nodes = list(end.parts), _nodes_to(tree, end.parts)
    return _End(tuple(at), hops)


def _nodes_to(tree: _Node, parts: Iterable[str]) -> list[_Node | None]:
    nodes: list[_Node | None] = [tree]
    for part in parts:
        nodes.append(_inner(nodes[-1], part))
    return nodes


def _inner(node: _Node | None, part: str) -> _Node | None:
    return node.inner.get(part) if node is not None else None
