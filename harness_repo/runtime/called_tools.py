"""The tools of a trajectory as its calls show them, where nobody kept what the model was offered.

No more than a stand-in: a tool that was not called is missing, and so is an argument that no call had.
"""

from collections.abc import Iterator
from typing import Any

from harness_repo.runtime.json_text import read_json

_TYPES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}


def infer_tools(trajectory: object) -> list[dict[str, Any]]:
    """Definitions as chat completions take them, in the order of the first calls; arguments of any shape are taken."""
    found: dict[str, dict[str, Any]] = {}
    for name, arguments in _calls(trajectory):
        properties = found.setdefault(name, {})
        for argument, value in arguments.items():
            properties.setdefault(argument, _describe(value))
    return [
        {"type": "function", "function": {"name": name, "parameters": _parameters(properties)}}
        for name, properties in found.items()
    ]


def _parameters(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _describe(value: object) -> dict[str, Any]:
    """The schema of a value by its type; of null, and of what is in a list, nothing is known."""
    kind = _TYPES.get(type(value))
    if kind == "array":
        return {"type": kind, "items": {}}
    return {"type": kind} if kind else {}


def _calls(trajectory: object) -> Iterator[tuple[str, dict[str, Any]]]:
    messages = trajectory.get("messages") if isinstance(trajectory, dict) else None
    for message in messages if isinstance(messages, list) else []:
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else []:
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict) and isinstance(name := function.get("name"), str) and name:
                yield name, _read(function.get("arguments"))


def _read(arguments: object) -> dict[str, Any]:
    if isinstance(arguments, str):
        try:
            arguments = read_json(arguments)
        except ValueError:
            return {}
    return arguments if isinstance(arguments, dict) else {}
