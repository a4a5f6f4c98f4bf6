"""Tools of a harness (tools/*.yaml): a function schema for the model, and where results come from."""

from dataclasses import dataclass, field
from typing import Any

from harness_repo.json_schema import SchemaUnusable, check_json_schema
from harness_repo.problems import Problem, error
from harness_repo.yamlfile import check_schema, read_yaml

# The runtime's own tool.
LOAD_SKILL = "load_skill"


@dataclass(frozen=True)
class Tool:
    """One tool; `description` is what the model is shown, with the labels of the result appended."""

    name: str
    description: str
    # JSON Schema of the arguments object.
    parameters: dict[str, Any]
    # {"kind": "fixture"} in v1.
    source: dict[str, Any] = field(default_factory=lambda: {"kind": "fixture"})
    path: str = ""
    # Result field -> label, as documented in the file.
    returns: dict[str, str] = field(default_factory=dict)

    def definition(self) -> dict[str, Any]:
        """The tool in chat-completions shape."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


def parse_tool(path: str, data: bytes) -> tuple[Tool | None, list[Problem]]:
    """Read a tool file; None when anything in it is an error."""
    read, problems = read_yaml(path, data)
    if read is None:
        return None, problems
    more, _ = check_schema(path, read, "tool")
    problems += more
    values: Any = read.value
    if not any(problem.is_error for problem in problems):
        problems += _meaning_problems(path, values, read.line_of(("parameters",)), read.line_of(("name",)))
    if any(problem.is_error for problem in problems):
        return None, problems
    returns = values.get("returns", {})
    description = describe(values["description"], returns)
    return Tool(values["name"], description, values["parameters"], values["source"], path, returns), problems


def describe(description: str, returns: dict[str, str]) -> str:
    """A tool's description with the labels of its result appended, as the model is shown it."""
    text = description.strip()
    if not returns:
        return text
    labels = "、".join(f"{field}（{label}）" for field, label in returns.items())
    return f"{text}\n返回：{labels}"


def _meaning_problems(path: str, values: Any, parameters_line: int, name_line: int) -> list[Problem]:
    problems = []
    if values["name"] == LOAD_SKILL:
        problems.append(error(path, name_line, "tool_name", f"{LOAD_SKILL} is the runtime's own tool"))
    try:
        check_json_schema(values["parameters"])
    except SchemaUnusable as failure:
        problems.append(error(path, parameters_line, "tool_parameters", str(failure)))
    return problems
