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

from harness_repo.format.problems import Problem, error, warning
from harness_repo.format.textfile import read_text
from harness_repo.format.yamlevents import line_too_much, read_quickly
from harness_repo.format.yamlnodes import Location, NodeBuilder, TooMuch, nearest_line, too_much

__all__ = ["MAX_CHARACTERS", "Location", "YamlFile", "check_schema", "parse_yaml", "read_yaml"]

# Where it has to go the slow way, reading takes several ms per 1,000 characters, and a part of a harness has a few
# hundred.
MAX_CHARACTERS = 64 * 1024


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
    quick = read_quickly(text, first_line)
    if quick is not None:
        return YamlFile(quick.value, quick.lines), []
    return _parse_thoroughly(path, text, first_line)


def _parse_thoroughly(path: str, text: str, first_line: int) -> tuple[YamlFile | None, list[Problem]]:
    """By ruamel, which knows all of YAML 1.2, and says where a text is none."""
    far = line_too_much(text)
    try:
        if far is not None:
            raise too_much(first_line + far)
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
        yield error(path, read.line_of(location), "schema", f"{where}: {_message(failure)}")
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
