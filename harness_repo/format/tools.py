"""Tools of a harness (tools/*.yaml): a function schema for the model, and where results come from."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from harness_repo.format.json_schema import SchemaUnusable, check_json_schema
from harness_repo.format.problems import Problem, error
from harness_repo.format.tool_sources import known_source, source_problems
from harness_repo.format.yamlfile import YamlFile, as_mapping, check_schema, read_yaml

# The runtime's own tool.
LOAD_SKILL = "load_skill"
# How long a tool may take when its file does not say.
DEFAULT_SECONDS = 10.0
# Larger files are read again each time, so that what is kept stays small.
_MOST_KEPT = 50_000


@dataclass(frozen=True)
class Tool:
    """One tool; `description` is what the model is shown, with the labels of the result appended."""

    name: str
    description: str
    # JSON Schema of the arguments object.
    parameters: dict[str, Any]
    # {"kind": "fixture" | "http" | "mcp", its settings}; see schemas/tool.schema.json.
    source: dict[str, Any] = field(default_factory=lambda: {"kind": "fixture"})
    path: str = ""
    # Result field -> label, as documented in the file.
    returns: dict[str, str] = field(default_factory=dict)
    # JSON Schema of a result; None: any JSON.
    result_schema: dict[str, Any] | None = None

    @property
    def seconds(self) -> float:
        """How long the source may take to answer."""
        return float(self.source.get("seconds", DEFAULT_SECONDS))

    def definition(self) -> dict[str, Any]:
        """The tool in chat-completions shape."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def parse_tool(path: str, data: bytes) -> tuple[Tool | None, list[Problem]]:
    """Read a tool file; None when anything in it is an error. All that is wrong is told at once."""
    tool, problems = _parse_kept(path, data) if len(data) <= _MOST_KEPT else _parse(path, data)
    return tool, list(problems)


def _parse(path: str, data: bytes) -> tuple[Tool | None, list[Problem]]:
    read, problems = read_yaml(path, data)
    if read is None:
        return None, problems
    more, _ = check_schema(path, read, "tool")
    problems += [*more, *_meaning_problems(path, read), *source_problems(path, read)]
    if any(problem.is_error for problem in problems):
        return None, problems
    return _build(path, read.value), problems


# Most versions of a harness have the same tools as the version before, and checking their schemas takes its time.
_parse_kept = functools.lru_cache(maxsize=512)(_parse)


def _build(path: str, values: Any) -> Tool:
    returns = values.get("returns", {})
    return Tool(
        values["name"],
        describe(values["description"], returns),
        values["parameters"],
        known_source(values["source"]),
        path,
        returns,
        values.get("result_schema"),
    )


def describe(description: str, returns: dict[str, str]) -> str:
    """A tool's description with the labels of its result appended, as the model is shown it."""
    text = description.strip()
    if not returns:
        return text
    labels = "、".join(f"{field}（{label}）" for field, label in returns.items())
    return f"{text}\n返回：{labels}"


def _meaning_problems(path: str, read: YamlFile) -> Iterator[Problem]:
    values = as_mapping(read.value)
    if values.get("name") == LOAD_SKILL:
        message = f"{LOAD_SKILL} is the runtime's own tool"
        yield error(path, read.line_of(("name",)), "tool_name", message)
    for message in _schema_faults(values.get("parameters")):
        yield error(path, read.line_of(("parameters",)), "tool_parameters", message)
    for message in _schema_faults(values.get("result_schema")):
        yield error(path, read.line_of(("result_schema",)), "tool_result_schema", message)


def _schema_faults(schema: object) -> Iterator[str]:
    try:
        check_json_schema(as_mapping(schema))
    except SchemaUnusable as failure:
        yield str(failure)
