"""Reads a harness's YAML into plain JSON values with line numbers; nothing in a file can build an object.

Size, depth and alias expansion are limited, and the result is checked against a schema of schemas/.
"""

import functools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import jsonschema
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from harness_repo.problems import Problem, error, warning
from harness_repo.textfile import read_text

# Reading takes about 30 ms per 1,000 characters, and a part of a harness has a few hundred.
MAX_CHARACTERS = 64 * 1024
MAX_ALIASES = 50
MAX_NODES = 20_000
MAX_DEPTH = 40

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class YamlFile:
    """What was read: JSON values, and the 1-based line on which each of them starts."""

    value: object
    lines: dict[Location, int] = field(default_factory=dict)

    def line_of(self, location: Iterable[str | int]) -> int:
        """The line of a value, or of the nearest thing around it."""
        return _nearest(self.lines, tuple(location), 1)


def _nearest(lines: dict[Location, int], at: Location, default: int) -> int:
    while at and at not in lines:
        at = at[:-1]
    return lines.get(at, default)


class _TooMuch(Exception):
    """A document beyond a limit; the text says which, `line` says where."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def read_yaml(path: str, data: bytes) -> tuple[YamlFile | None, list[Problem]]:
    """The file's value, or None; and what is wrong with it."""
    text, problems = read_text(path, data)
    if text is None:
        return None, problems
    read, more = parse_yaml(path, text)
    return read, problems + more


def parse_yaml(path: str, text: str, *, first_line: int = 1) -> tuple[YamlFile | None, list[Problem]]:
    """As read_yaml, for text that starts on `first_line` of its file."""
    if len(text) > MAX_CHARACTERS:
        return None, [error(path, first_line, "yaml_limit", f"more than {MAX_CHARACTERS} characters")]
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        builder = _Builder(first_line)
        value = builder.build(node, ()) if node is not None else None
    except MarkedYAMLError as failure:
        mark = failure.problem_mark or failure.context_mark
        line = first_line + (mark.line if mark else 0)
        return None, [
            error(path, line, "yaml_syntax", str(failure.problem or failure.context), _hint(failure))
        ]
    except _TooMuch as failure:
        return None, [error(path, failure.line, "yaml_limit", str(failure))]
    except (YAMLError, ValueError, RecursionError) as failure:
        return None, [error(path, first_line, "yaml_syntax", str(failure).splitlines()[0])]
    return YamlFile(value, builder.lines), [
        error(path, line, "yaml_duplicate_key", f"the key {key!r} stands here twice")
        for key, line in builder.twice
    ]


def check_schema(path: str, read: YamlFile, schema: str) -> tuple[list[Problem], list[Location]]:
    """Problems of a value against schemas/<schema>.schema.json, and the locations that cannot be used."""
    failures = sorted(
        _validator(schema).iter_errors(read.value), key=lambda failure: list(map(str, failure.path))
    )
    problems = [problem for failure in failures for problem in _schema_problems(path, read, failure)]
    bad = [
        tuple(failure.absolute_path) for failure in failures if failure.validator != "additionalProperties"
    ]
    return problems, bad


def _schema_problems(path: str, read: YamlFile, failure: jsonschema.ValidationError) -> Iterator[Problem]:
    location = tuple(failure.absolute_path)
    where = ".".join(str(part) for part in location) or "the file"
    if failure.validator != "additionalProperties" or failure.validator_value is not False:
        yield error(path, read.line_of(location), "schema", f"{where}: {_short(failure.message)}")
        return
    # A key nobody knows does no harm to the rest of the file.
    known = failure.schema.get("properties", {}) if isinstance(failure.schema, dict) else {}
    instance: Any = failure.instance
    for key in instance:
        if key not in known:
            yield warning(
                path, read.line_of((*location, key)), "unknown_key", f"{where}: {key!r} is not known"
            )


@functools.cache
def _validator(schema: str) -> jsonschema.Draft202012Validator:
    text = resources.files("harness_repo").joinpath(f"schemas/{schema}.schema.json").read_text("utf-8")
    return jsonschema.Draft202012Validator(json.loads(text))


def _short(message: str) -> str:
    return message if len(message) <= 300 else message[:300] + "…"


def _hint(failure: MarkedYAMLError) -> str:
    return "put the value in quotes" if "mapping values" in str(failure.problem) else ""


class _Builder:
    """Builds JSON values from YAML nodes and notes the line of each."""

    def __init__(self, first_line: int) -> None:
        self.lines: dict[Location, int] = {}
        self.twice: list[tuple[str, int]] = []
        self._first = first_line
        self._nodes = 0
        self._seen: set[int] = set()
        self._aliases = 0

    def build(self, node: Node, at: Location) -> Any:
        """The value of a node; an alias is built again at each place, and counted."""
        is_alias = id(node) in self._seen
        line = _nearest(self.lines, at, self._first) if is_alias else self._first + node.start_mark.line
        self._count(node, at, line)
        self.lines.setdefault(at, line)
        if isinstance(node, MappingNode):
            return self._mapping(node, at)
        if isinstance(node, SequenceNode):
            return [self.build(item, (*at, number)) for number, item in enumerate(node.value)]
        return _scalar(node)

    def _mapping(self, node: MappingNode, at: Location) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = self._first + key_node.start_mark.line
            if not isinstance(key_node, ScalarNode) or key_node.value == "<<":
                raise _TooMuch("only plain texts can be keys", line)
            key = key_node.value
            if key in result:
                self.twice.append((key, line))
                continue
            # The key's line is where a person looks, even when the value starts further down.
            self.lines[(*at, key)] = line
            result[key] = self.build(value_node, (*at, key))
        return result

    def _count(self, node: Node, at: Location, line: int) -> None:
        self._nodes += 1
        self._aliases += id(node) in self._seen
        self._seen.add(id(node))
        if self._aliases > MAX_ALIASES:
            raise _TooMuch(f"more than {MAX_ALIASES} aliases", line)
        if self._nodes > MAX_NODES or len(at) > MAX_DEPTH:
            raise _TooMuch(f"more than {MAX_NODES} values, or deeper than {MAX_DEPTH} levels", line)


def _scalar(node: Node) -> str | int | float | bool | None:
    """YAML 1.2 core scalars; everything else, dates too, stays the text that stands there."""
    kind = str(node.tag).rsplit(":", 1)[-1]
    text = str(node.value)
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    if kind == "int":
        return _integer(text)
    if kind == "float" and text.lower().lstrip("+-") not in (".inf", ".nan"):
        return float(text.replace("_", ""))
    return text


def _integer(text: str) -> int:
    digits = text.replace("_", "")
    bare = digits.lstrip("+-").lower()
    return int(digits, 0) if bare.startswith(("0x", "0o", "0b")) else int(digits, 10)
