"""Reads a harness's YAML into plain JSON values with line numbers; nothing in a file can build an object.

Size, depth and alias expansion are limited, and the result is checked against a schema of schemas/.
"""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import jsonschema
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from harness_repo.format.json_schema import find_violations, load_schema
from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.textfile import read_text
from harness_repo.format.yamlevents import line_too_much, read_quickly
from harness_repo.format.yamlnodes import Location, NodeBuilder, TooMuch, nearest_line, too_much

__all__ = [
    "MAX_CHARACTERS",
    "Location",
    "YamlFile",
    "as_list",
    "as_mapping",
    "check_schema",
    "parse_yaml",
    "read_yaml",
]

# Where it has to go the slow way, reading takes several ms per 1,000 characters, and a part of a harness has a few
# hundred.
MAX_CHARACTERS = 64 * 1024

# To look for what is near takes time: of so many keys of one place, and so many characters of each.
_MOST_HINTS = 20
_LONGEST_KEY = 40

# What a quoted text may say that no text can have.
_ESCAPE = re.compile(r"\\(?:0|x00|[uU])")


@dataclass(frozen=True)
class YamlFile:
    """What was read: JSON values, and the 1-based line on which each of them starts."""

    value: object
    lines: dict[Location, int] = field(default_factory=dict)

    def line_of(self, location: Iterable[str | int]) -> int:
        """The line of a value, or of the nearest thing around it."""
        return nearest_line(self.lines, tuple(location), 1)


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
    read, problems = _parse(path, text, first_line)
    if read is None or not _ESCAPE.search(text):
        return read, problems
    read, more = _mend_texts(path, read)
    return read, problems + more


def _parse(path: str, text: str, first_line: int) -> tuple[YamlFile | None, list[Problem]]:
    quick = read_quickly(text, first_line)
    if quick is not None:
        return YamlFile(quick.value, quick.lines), []
    return _parse_thoroughly(path, text, first_line)


def _parse_thoroughly(path: str, text: str, first_line: int) -> tuple[YamlFile | None, list[Problem]]:
    """By ruamel, which knows all of YAML 1.2, and says where a text is none."""
    far = line_too_much(text)
    if far is not None:
        return None, [error(path, first_line + far, "yaml_limit", str(too_much(far)))]
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        builder = NodeBuilder(first_line)
        value = builder.build(node) if node is not None else None
    except MarkedYAMLError as failure:
        mark = failure.problem_mark or failure.context_mark
        line = first_line + (mark.line if mark else 0)
        return None, [
            error(path, line, "yaml_syntax", str(failure.problem or failure.context), _hint(failure))
        ]
    except TooMuch as failure:
        return None, [error(path, failure.line, "yaml_limit", str(failure))]
    except Exception as failure:  # noqa: BLE001  the library raises what it stumbles over, of many kinds
        said = (str(failure).splitlines() or [type(failure).__name__])[0]
        return None, [error(path, first_line, "yaml_syntax", said[:300], "is this YAML at all?")]
    return YamlFile(value, builder.lines), [
        error(path, line, "yaml_duplicate_key", f"the key {key!r} stands here twice")
        for key, line in builder.twice
    ]


def _mend_texts(path: str, read: YamlFile) -> tuple[YamlFile, list[Problem]]:
    """Put U+FFFD where an escape stands for what no text can have: NUL, and half of a surrogate pair."""
    lines: dict[Location, int] = {}
    problems: dict[int, Problem] = {}

    def mend(text: str, at: Location) -> str:
        mended = (
            text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").replace("\0", "\ufffd")
        )
        if mended.count("\ufffd") > text.count("\ufffd"):
            line = read.line_of(at)
            message = "an escape stands for NUL or for half of a surrogate pair, which no text can have"
            problems.setdefault(line, error(path, line, "yaml_character", message, "remove it"))
        return mended

    def build(value: Any, at: Location, new: Location) -> Any:
        if at in read.lines:
            lines.setdefault(new, read.lines[at])
        if isinstance(value, str):
            return mend(value, at)
        if isinstance(value, list):
            return [build(item, (*at, number), (*new, number)) for number, item in enumerate(value)]
        if not isinstance(value, dict):
            return value
        result: dict[str, Any] = {}
        for key, item in value.items():
            name = mend(key, (*at, key))
            result.setdefault(name, build(item, (*at, key), (*new, name)))
        return result

    return YamlFile(build(read.value, (), ()), lines), list(problems.values())


def as_mapping(value: object) -> dict[str, Any]:
    """The value if it is a mapping, else an empty one: for checks that go on where a schema was broken."""
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def check_schema(path: str, read: YamlFile, schema: str) -> tuple[list[Problem], list[Location]]:
    """Problems of a value against schemas/<schema>.schema.json, and the locations that cannot be used."""
    try:
        found = list(find_violations(load_schema(schema), read.value))
    except Exception as failure:  # noqa: BLE001  a value that cannot be looked at is no usable value
        every = [(key,) for key in read.value] if isinstance(read.value, dict) else []
        return [error(path, read.line_of(()), "schema", f"cannot be checked: {failure}"[:300])], [*every]
    failures = sorted(found, key=lambda failure: list(map(str, failure.path)))
    problems = [problem for failure in failures for problem in _schema_problems(path, read, failure, schema)]
    bad = [
        tuple(failure.absolute_path) for failure in failures if failure.validator != "additionalProperties"
    ]
    return problems, bad


def _schema_problems(
    path: str, read: YamlFile, failure: jsonschema.ValidationError, schema: str
) -> Iterator[Problem]:
    location = tuple(failure.absolute_path)
    where = ".".join(str(part) for part in location) or "the file"
    if failure.validator != "additionalProperties" or failure.validator_value is not False:
        yield error(path, read.line_of(location), "schema", f"{where}: {_message(failure)}")
        return
    # A key nobody knows does no harm to the rest of the file.
    known = failure.schema.get("properties", {}) if isinstance(failure.schema, dict) else {}
    instance: Any = failure.instance
    unknown = [key for key in instance if key not in known]
    for number, key in enumerate(unknown):
        line = read.line_of((*location, key))
        hint = _key_hint(key, known, schema if not location else "") if number < _MOST_HINTS else ""
        yield warning(path, line, "unknown_key", f"{where}: {key!r} is not known", hint)


def _key_hint(key: str, known: Iterable[str], schema: str) -> str:
    """The key that may be meant, or where else it could stand."""
    near = difflib.get_close_matches(key[:_LONGEST_KEY].lower().replace("_", "-"), known, n=1)
    near = near or difflib.get_close_matches(key[:_LONGEST_KEY].lower(), known, n=1)
    if near:
        return f"meant is perhaps {near[0]}"
    return "put it under metadata" if schema == "skill" else f"known here: {', '.join(known)}"


def _message(failure: jsonschema.ValidationError) -> str:
    # The library's message starts with the whole text.
    if failure.validator == "maxLength":
        return f"longer than {failure.validator_value} characters"
    message = failure.message
    return message if len(message) <= 300 else message[:300] + "…"


def _hint(failure: MarkedYAMLError) -> str:
    said = str(failure.problem)
    if "\\t" in said:
        return "indent with spaces, not with tabs"
    return "put the value in quotes" if "mapping values" in said else ""
