"""Tool calls of any provider's shape as those of an OpenAI message; arguments are kept exactly as they stand."""

import json
from typing import Any

from evolution.adapters.formats.shapes import as_dict, as_text, kind_of, parse_json

Message = dict[str, Any]
# Types of parts, and of entries of lists, that are calls.
CALLS = frozenset(
    {"tool_use", "tool-call", "tool_call", "function_call", "server_tool_use", "mcp_tool_use", "mcp_call"}
)
_IDS = ("id", "call_id", "tool_call_id", "toolCallId", "tool_use_id")
_NAMES = ("name", "toolName", "tool_name", "function_name", "function")
_ARGUMENTS = ("arguments", "args", "input", "parameters", "kwargs", "tool_arguments")
# Gemini's: {"function_call": {"name": …, "args": …}}
_NESTED = ("function", "function_call", "functionCall")


def is_call(part: dict[str, Any]) -> bool:
    """Say whether a part of a content is a call."""
    if kind_of(part) in CALLS:
        return True
    return any(isinstance(part.get(name), dict) for name in ("function_call", "functionCall"))


def read_call(call: dict[str, Any]) -> Message:
    """The call as {"id", "type", "function": {"name", "arguments"}}; what it lacks is empty."""
    nested: dict[str, Any] = next((call[name] for name in _NESTED if isinstance(call.get(name), dict)), {})
    both = {**call, **nested}
    # Responses have an id of their own beside that of the call.
    identity = as_text(call.get("call_id")) or _first(call, _IDS) or _first(nested, _IDS)
    named = next((both[name] for name in _NAMES if isinstance(both.get(name), str)), "")
    arguments = next((both[name] for name in _ARGUMENTS if both.get(name) is not None), None)
    return {"id": identity, "type": "function", "function": {"name": named, "arguments": arguments}}


def read_calls_in_text(text: str) -> list[Message]:
    """The calls of a text that is a JSON list of nothing but OpenAI calls, as Koog writes them; else none."""
    if not text.startswith("[") or '"function"' not in text:
        return []
    calls = parse_json(text)
    if not isinstance(calls, list) or not calls:
        return []
    are_calls = all(as_dict(as_dict(call).get("function")).get("name") for call in calls)
    return [read_call(call) for call in calls] if are_calls else []


def parse_arguments(arguments: Any) -> Any:
    """The arguments as a value; a text that is not JSON stays one."""
    return parse_json(arguments)


def as_json(arguments: Any) -> str:
    """Arguments as the text that a chat completion has."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments or {}, ensure_ascii=False)


def _first(values: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := as_text(values.get(name)))), "")
