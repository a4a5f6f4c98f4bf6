"""What the parts of a message's content hold, in any provider's shape: text, thinking, calls, results, media."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evolution.adapters.formats.calls import CALLS, Message, is_call, read_call
from evolution.adapters.formats.media import refer_to, replace_data
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, kind_of

THINKING = frozenset({"thinking", "reasoning", "redacted_thinking", "thought", "reasoning_text"})
_RESULTS = frozenset(
    {
        "tool_result",
        "tool-result",
        "tool_call_response",
        "function_call_output",
        "tool_response",
        "tool-return",
    }
)
_TEXTS = ("text", "content", "refusal", "value", "transcript")
_THOUGHTS = ("thinking", "reasoning", "text", "content", "thought", "summary", "data")


@dataclass
class Parts:
    """What was in the parts, in order."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    # as in an OpenAI message's tool_calls
    calls: list[Message] = field(default_factory=list)
    # tool messages
    results: list[Message] = field(default_factory=list)

    @property
    def text(self) -> str | None:
        """All texts, one below the other; None where there is none at all."""
        return "\n".join(self.texts) if self.texts else None


def read_parts(content: list[Any]) -> Parts:
    """Sort a content's parts; what is of no known kind stands by its type's name, and is not dropped silently."""
    found = Parts()
    for part in content:
        _read_part(part, found)
    return found


def is_part(value: Any) -> bool:
    """Say whether an object that stands for a content is one part of it."""
    return isinstance(value, dict) and (_says_type(value) or refer_to(value) is not None)


def _says_type(part: dict[str, Any]) -> bool:
    kind = kind_of(part)
    is_text = kind in {"text", "input_text", "output_text"} and isinstance(part.get("text"), str)
    return is_text or kind in THINKING or _is_result(part)


def _is_result(part: Mapping[str, Any]) -> bool:
    return kind_of(part) in _RESULTS or kind_of(part).endswith("_tool_result")


def _read_part(part: Any, found: Parts) -> None:
    if isinstance(part, str):
        found.texts.append(replace_data(part))
    elif not isinstance(part, dict):
        found.texts.append(json.dumps(part, ensure_ascii=False))
    elif kind_of(part) in THINKING or part.get("thought") is True:
        found.thoughts.append(_first_text(part, _THOUGHTS))
    elif (result := read_result(part)) is not None:
        found.results.append(result)
    elif "toolCallId" in part and kind_of(part) not in CALLS:
        _read_used(part, found)
    elif is_call(part):
        found.calls.append(read_call(part))
    elif (reference := refer_to(part)) is not None:
        found.texts.append(reference)
    else:
        text = _first_text(part, _TEXTS)
        found.texts.append(replace_data(text) if text or _has_text(part) else _name_part(part))


def _read_used(part: dict[str, Any], found: Parts) -> None:
    """A call and its result in one part, such as the Vercel SDK's {"type": "tool-<name>", "input", "output"}."""
    name = part.get("toolName") or as_text(part.get("type")).removeprefix("tool-")
    found.calls.append(read_call({**part, "name": name}))
    output = part.get("errorText") if part.get("output") is None else part["output"]
    if output is not None:
        used = {"id": part["toolCallId"], "name": name, "result": output, "is_error": "errorText" in part}
        found.results.append(_result(used))


def _has_text(part: Mapping[str, Any]) -> bool:
    return any(isinstance(part.get(name), str) for name in _TEXTS)


def _name_part(part: Mapping[str, Any]) -> str:
    return f"[{as_text(part.get('type')) or next(iter(part), 'part')}]"


def _first_text(part: Mapping[str, Any], names: tuple[str, ...]) -> str:
    return next((text for name in names if (text := _join(part.get(name)))), "")


def _join(value: Any) -> str:
    """A text, or the texts of the parts that it is in again."""
    if isinstance(value, list):
        return "\n".join(filter(None, map(_join, value)))
    if isinstance(value, dict):
        return _first_text(value, ("text", "value", "content"))
    return value if isinstance(value, str) else ""


def read_result(part: dict[str, Any]) -> Message | None:
    """The tool message that a part amounts to; None for other parts."""
    if _is_result(part):
        return _result(part)
    # Gemini's: {"function_response": {"name": …, "response": …}}
    nested = next(
        (
            part[name]
            for name in ("function_response", "functionResponse")
            if isinstance(part.get(name), dict)
        ),
        None,
    )
    return None if nested is None else _result(nested)


def _result(part: Mapping[str, Any]) -> Message:
    identity = next(
        (
            as_text(part[name])
            for name in ("tool_use_id", "tool_call_id", "toolCallId", "call_id", "id")
            if part.get(name)
        ),
        "",
    )
    message: Message = {"role": "tool", "content": _result_text(part), "tool_call_id": identity}
    name = as_text(part.get("name") or part.get("toolName") or part.get("tool_name"))
    if name:
        message["name"] = name
    output = as_dict(part.get("output"))
    if part.get("is_error") or part.get("isError") or str(output.get("type", "")).startswith("error"):
        message["is_error"] = True
    return message


def _result_text(part: Mapping[str, Any]) -> str:
    names = ("content", "response", "result", "output")
    value = next((part[name] for name in names if part.get(name) is not None), "")
    # The Vercel SDK's: {"type": "json", "value": …}
    if isinstance(value, dict) and set(value) == {"type", "value"}:
        value = value["value"]
    return render_content(value) or ""


def render_content(content: Any) -> str | None:
    """A content as text, media as references; None for null. What is neither text nor parts is JSON."""
    if content is None:
        return None
    if isinstance(content, str):
        return replace_data(content)
    if is_part(content):
        content = [content]
    if isinstance(content, list) and all(isinstance(part, str) or is_part(part) for part in content):
        return read_parts(as_list(content)).text or ""
    return json.dumps(content, ensure_ascii=False)
