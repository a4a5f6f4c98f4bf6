"""Tools in an evaluation: answers come from the case's fixtures, never from the world."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_repo.json_schema import SchemaUnusable, find_violation
from harness_repo.runtime.json_text import read_json
from harness_repo.tools import Tool

Fixtures = Mapping[str, Sequence[Mapping[str, Any]]]


@dataclass(frozen=True)
class ToolOutcome:
    """What a tool call brought: a result, or an error as "code" or "code: detail"."""

    result: object
    error: str | None
    ms: float


class ToolSandbox:
    """Answers tool calls from fixtures {tool: [{"arguments": {...}, "result": ...}]}.

    An entry matches when each of its arguments equals the call's; {} matches all; the first match wins.
    """

    def __init__(self, tools: Mapping[str, Tool], fixtures: Fixtures) -> None:
        self._tools = tools
        self._fixtures = fixtures

    def call(self, name: str, arguments_json: str) -> ToolOutcome:
        """Answer one call; errors are "unknown_tool", "bad_arguments" and "not_found", never raised."""
        started = time.monotonic()
        result, failure = self._answer(name, arguments_json)
        return ToolOutcome(result, failure, round((time.monotonic() - started) * 1000, 2))

    def _answer(self, name: str, arguments_json: str) -> tuple[object, str | None]:
        tool = self._tools.get(name)
        if tool is None:
            return None, f"unknown_tool: there is {', '.join(sorted(self._tools)) or 'none'}"
        try:
            arguments = parse_arguments(arguments_json)
            wrong = find_violation(tool.parameters, arguments)
        except (ValueError, SchemaUnusable) as failure:
            wrong = str(failure)
        return (None, f"bad_arguments: {wrong}") if wrong else self._find(name, arguments)

    def _find(self, name: str, arguments: dict[str, Any]) -> tuple[object, str | None]:
        for entry in self._fixtures.get(name, ()):
            wanted = entry.get("arguments", {})
            if all(key in arguments and arguments[key] == value for key, value in wanted.items()):
                return entry.get("result"), None
        return None, "not_found"


def parse_arguments(text: str) -> dict[str, Any]:
    """The arguments object of a tool call, or ValueError; no text at all means no arguments."""
    arguments = read_json(text) if text.strip() else {}
    if not isinstance(arguments, dict):
        raise ValueError("the arguments are not a JSON object")
    return arguments
