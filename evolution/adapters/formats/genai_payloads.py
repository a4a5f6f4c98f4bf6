"""Payloads of model calls as messages: lists of messages, requests and responses of several APIs, plain texts."""

import json
from typing import Any

from evolution.adapters.formats.shapes import as_dict, as_list, as_text, unpack_json

Message = dict[str, Any]
_ROLES = {"model": "assistant", "human": "user", "ai": "assistant", "bot": "assistant", "function": "tool"}
# Fields of an input or output in which a text alone is what was asked or answered.
_TEXTS = (
    "question", "query", "input", "prompt", "text", "content", "message", "user_input", "request", "task",
    "answer", "output", "response", "reply", "result", "completion", "final_output", "output_text",
    "combined_chunk_content",
)  # fmt: skip
# One of these fields is in every part of a content.
_CALLS = {
    "toolRequest": "tool_call", "toolUse": "tool_call",
    "toolResponse": "tool_call_response", "toolResult": "tool_call_response",
}  # fmt: skip
_PARTS = frozenset({"type", "text", "reasoningContent", *_CALLS})
_MOST_WRAPPING = 4
_WRAPPERS = ("messages", "inputs", "kwargs", "data", "message", "output", "outputs", "response", "input")


def as_message(role: str, content: Any) -> Message:
    """A message with one of OpenAI's roles; parts without a type get one."""
    if isinstance(content, list):
        content = [_read_part(part) for part in content]
    return {"role": _ROLES.get(role.lower(), role.lower()), "content": content}


def read_messages(value: Any, role: str) -> list[Message]:
    """The messages that a value amounts to, `role` for those without one; a text is one message; null is none."""
    value = unpack_json(value)
    if value is None or value in ("", [], {}):
        return []
    if isinstance(value, str):
        return [as_message(role, _unquote(value))]
    found = find_messages(value, role)
    if found:
        return found
    text = find_text_in(value)
    return [as_message(role, text if text is not None else json.dumps(value, ensure_ascii=False))]


def find_messages(value: Any, role: str, depth: int = 0) -> list[Message]:
    """The messages in a payload; none where it has no shape of a conversation."""
    value = unpack_json(value) if depth <= _MOST_WRAPPING else None
    if isinstance(value, list):
        return _read_list(value, role, depth)
    return _read_object(value, role, depth) if isinstance(value, dict) else []


def _read_object(value: dict[str, Any], role: str, depth: int) -> list[Message]:
    if _is_message(value):
        return [_read_message(value, role)]
    if isinstance(value.get("contents"), list):
        return read_gemini_request(value)
    for name in ("choices", "candidates", "generations"):
        if isinstance(value.get(name), list):
            return _read_choices(value[name], depth)
    for name in _WRAPPERS:
        if isinstance(unpack_json(value.get(name)), list | dict):
            found = find_messages(value[name], role, depth + 1)
            if found:
                return [*read_system(value.get("system")), *found]
    return []


def find_text_in(value: Any, depth: int = 0) -> str | None:
    """The text that an input or output comes down to; None where it is more than that."""
    value = unpack_json(value)
    if isinstance(value, str):
        return _unquote(value)
    if isinstance(value, list):
        return find_text_in(value[0], depth + 1) if len(value) == 1 and depth < _MOST_WRAPPING else None
    if not isinstance(value, dict) or depth > _MOST_WRAPPING:
        return None
    wrapped = [value[name] for name in ("inputs", "kwargs", "args") if value.get(name)]
    for inner in wrapped:
        if (text := find_text_in(inner, depth + 1)) is not None:
            return text
    for name in _TEXTS:
        if (
            value.get(name) not in (None, "", [], {})
            and (text := find_text_in(value[name], depth + 1)) is not None
        ):
            return text
    return None


def read_system(value: Any) -> list[Message]:
    """System instructions: a text, or parts."""
    value = unpack_json(value)
    if isinstance(value, dict):
        value = value.get("parts", [value])
    if isinstance(value, str):
        return [as_message("system", _unquote(value))] if value else []
    parts = [part for part in as_list(value) if isinstance(part, dict | str)]
    return [as_message("system", parts)] if parts else []


def read_gemini_request(request: dict[str, Any]) -> list[Message]:
    """The messages of a request to Gemini: contents with parts, the system instruction in its configuration."""
    config = as_dict(request.get("config")) or request
    system = config.get("system_instruction") or config.get("systemInstruction")
    contents = [content for content in as_list(request.get("contents")) if isinstance(content, dict)]
    return [*read_system(system), *(_read_message(content, "user") for content in contents)]


def read_parts_of(content: Any) -> Any:
    """A content that is a JSON list of parts in a text, as some writers have it; every other one as it stands."""
    value = unpack_json(content) if isinstance(content, str) and content.startswith("[") else None
    are_parts = isinstance(value, list) and value and all(_PARTS & set(as_dict(part)) for part in value)
    return value if are_parts else content


def _read_list(value: list[Any], role: str, depth: int) -> list[Message]:
    entries = [unpack_json(entry) for entry in value]
    if entries and all(_is_message(entry) for entry in entries):
        return [_read_message(entry, role) for entry in entries]
    # Batches: LangChain and others have a list of conversations, of which there is one.
    if len(entries) == 1 and isinstance(entries[0], list | dict):
        return find_messages(entries[0], role, depth + 1)
    return []


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    has_content = any(name in value for name in ("content", "parts", "tool_calls", "function_call"))
    return isinstance(value.get("role"), str) and (has_content or len(value) == 1)


def _read_message(value: dict[str, Any], role: str) -> Message:
    content = unpack_json(value["parts"]) if "parts" in value else read_parts_of(value.get("content"))
    message = {**value, **as_message(as_text(value.get("role")) or role, content)}
    message.pop("parts", None)
    if isinstance(calls := unpack_json(value.get("tool_calls")), list):
        message["tool_calls"] = calls
    return message


def _read_part(part: Any) -> Any:
    """Parts of Genkit and Bedrock have no type, but a field of that name."""
    if not isinstance(part, dict) or "type" in part:
        return part
    for name, kind in _CALLS.items():
        if isinstance(inner := part.get(name), dict):
            identity = as_text(inner.get("ref") or inner.get("toolUseId"))
            return {**inner, "type": kind, "id": identity, "content": _read_result(inner.get("content"))}
    if isinstance(media := part.get("media"), dict):
        return {"type": "file", "media_type": media.get("contentType"), "url": media.get("url")}
    thought = as_dict(as_dict(part.get("reasoningContent")).get("reasoningText")).get("text") or part.get(
        "reasoning"
    )
    return {"type": "reasoning", "content": thought} if isinstance(thought, str) else part


def _read_result(content: Any) -> Any:
    """What a tool of Bedrock gave back: parts with a text or with JSON."""
    parts = [as_dict(part) for part in as_list(content)]
    if len(parts) == 1 and "json" in parts[0]:
        return parts[0]["json"]
    are_texts = bool(parts) and all(isinstance(part.get("text"), str) for part in parts)
    return [{"type": "text", **part} for part in parts] if are_texts else content


def _read_choices(choices: list[Any], depth: int) -> list[Message]:
    """The first choice of a response: the others are other answers to the same."""
    first = choices[0] if choices else None
    if isinstance(first, list):
        return _read_choices(first, depth)
    first = as_dict(first)
    inner = first.get("message") or first.get("content")
    if isinstance(inner, dict):
        return find_messages(inner, "assistant", depth + 1) or [_read_message(inner, "assistant")]
    return [as_message("assistant", first["text"])] if isinstance(first.get("text"), str) else []


def _unquote(text: str) -> str:
    """A text that stands in quotes as JSON as the text that it is."""
    if len(text) < 2 or text[0] != '"' or text[-1] != '"':
        return text
    try:
        inner = json.loads(text)
    except ValueError:
        return text
    return inner if isinstance(inner, str) else text
