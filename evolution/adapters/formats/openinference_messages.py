"""Messages of OpenInference: llm.input_messages.0.message.role, llm.prompts.0.prompt.text and the like.

https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
"""

from collections.abc import Mapping
from typing import Any

from evolution.adapters.formats.genai_payloads import as_message
from evolution.adapters.formats.shapes import as_dict, as_text
from evolution.adapters.formats.span_attributes import list_entries, listed, unflatten

Message = dict[str, Any]


def read_openinference(attributes: Mapping[str, Any]) -> tuple[list[Message], list[Message]]:
    """The messages that were sent, and those that came back."""
    inputs = _read_side(attributes, "llm.input_messages", "user")
    outputs = _read_side(attributes, "llm.output_messages", "assistant")
    return (
        inputs or _read_texts(attributes, "llm.prompts", "prompt", "user"),
        outputs or _read_texts(attributes, "llm.choices", "completion", "assistant"),
    )


def _read_side(attributes: Mapping[str, Any], name: str, role: str) -> list[Message]:
    entries = [as_dict(as_dict(entry).get("message")) for entry in list_entries(attributes, name)]
    return [message for entry in entries for message in _read_message(entry, role)]


def _read_message(entry: dict[str, Any], role: str) -> list[Message]:
    parts = [_read_part(unflatten(as_dict(part))) for part in listed(entry.get("contents"))]
    calls = [_read_call(as_dict(call)) for call in listed(entry.get("tool_calls"))]
    if not calls and entry.get("function_call_name"):
        arguments = entry.get("function_call_arguments_json")
        calls = [{"function": {"name": entry["function_call_name"], "arguments": arguments}}]
    if calls:
        # Ordered parts name the calls again.
        parts = [part for part in parts if "function" not in part]
    content = parts or entry.get("content")
    if content is None and not calls:
        return []
    message = as_message(as_text(entry.get("role")) or role, content)
    if calls:
        message["tool_calls"] = calls
    for name in ("name", "tool_call_id"):
        if as_text(entry.get(name)):
            message[name] = as_text(entry[name])
    return [message]


def _read_part(part: dict[str, Any]) -> dict[str, Any]:
    content = as_dict(part.get("message_content"))
    if "tool_call" in part:
        return {"type": "tool_call", **_read_call(part)}
    media = as_dict(as_dict(content.get(as_text(content.get("type")))))
    inner = next((value for value in media.values() if isinstance(value, dict)), {})
    return {**content, **inner} if inner else content


def _read_call(entry: dict[str, Any]) -> dict[str, Any]:
    call = as_dict(unflatten(entry).get("tool_call")) or entry
    return {"id": as_text(call.get("id")), "function": as_dict(call.get("function"))}


def _read_texts(attributes: Mapping[str, Any], name: str, key: str, role: str) -> list[Message]:
    entries = [as_dict(as_dict(entry).get(key)) for entry in list_entries(attributes, name)]
    return [as_message(role, entry["text"]) for entry in entries if isinstance(entry.get("text"), str)]
