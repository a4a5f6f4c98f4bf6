"""Builds JSON values from ruamel's YAML nodes, with the line of each; limits of size, depth and aliases hold."""

import math
from typing import Any

from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

MAX_ALIASES = 50
MAX_NODES = 20_000
MAX_DEPTH = 40
# Of a number; Python reads and writes those of a few thousand digits only.
MAX_NUMBER_CHARACTERS = 1000

Location = tuple[str | int, ...]
Scalar = str | int | float | bool | None


class TooMuch(Exception):
    """A document beyond a limit; the text says which, `line` says where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def too_much(line: int) -> TooMuch:
    """The error of a document with too many values or levels."""
    return TooMuch(f"more than {MAX_NODES} values, or deeper than {MAX_DEPTH} levels", line)


def nearest_line(lines: dict[Location, int], at: Location, default: int) -> int:
    """The line of a value, or of the nearest thing around it."""
    while at and at not in lines:
        at = at[:-1]
    return lines.get(at, default)


class NodeBuilder:
    """Builds JSON values from YAML nodes and notes the line of each."""

    def __init__(self, first_line: int) -> None:
        self.lines: dict[Location, int] = {}
        # Keys that stand in one mapping twice, with the line of the second.
        self.twice: list[tuple[str, int]] = []
        self._first = first_line
        self._nodes = 0
        self._seen: set[int] = set()
        self._aliases = 0

    def build(self, node: Node, at: Location = ()) -> Any:
        """The value of a node; an alias is built again at each place, and counted. Raises TooMuch, ValueError."""
        is_alias = id(node) in self._seen
        line = nearest_line(self.lines, at, self._first) if is_alias else self._first + node.start_mark.line
        self._count(node, at, line)
        self.lines.setdefault(at, line)
        if isinstance(node, MappingNode):
            return self._mapping(node, at)
        if isinstance(node, SequenceNode):
            return [self.build(item, (*at, number)) for number, item in enumerate(node.value)]
        return scalar_value(str(node.tag), str(node.value))

    def _mapping(self, node: MappingNode, at: Location) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = self._first + key_node.start_mark.line
            if not isinstance(key_node, ScalarNode) or key_node.value == "<<":
                raise TooMuch("only plain texts can be keys", line)
            key = key_node.value
            if key in result:
                self.twice.append((key, line))
                continue
            # The key's line is where a person looks, even when the value starts further down.
            self.lines[*at, key] = line
            result[key] = self.build(value_node, (*at, key))
        return result

    def _count(self, node: Node, at: Location, line: int) -> None:
        self._nodes += 1
        self._aliases += id(node) in self._seen
        self._seen.add(id(node))
        if self._aliases > MAX_ALIASES:
            raise TooMuch(f"more than {MAX_ALIASES} aliases", line)
        if self._nodes > MAX_NODES or len(at) > MAX_DEPTH:
            raise too_much(line)


def scalar_value(tag: str, text: str) -> Scalar:
    """YAML 1.2 core scalars; all else, dates and what only looks like a number too, stays the text that it is."""
    kind = tag.rsplit(":", 1)[-1]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind not in ("int", "float") or len(text) > MAX_NUMBER_CHARACTERS:
        return text
    try:
        return _integer(text) if kind == "int" else _finite(text)
    except ValueError:
        # 0x_ and +_ are numbers to the patterns of YAML's libraries.
        return text


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    bare = digits.lstrip("+-").lower()
    return int(digits, 0) if bare.startswith(("0x", "0o", "0b")) else int(digits, 10)


def _finite(text: str) -> float | str:
    """JSON knows no infinity, and 1e999 is one."""
    number = float(text.replace("_", ""))
    return number if math.isfinite(number) else text
