"""OpenAI chat messages as a trajectory/1, the record that the runtime writes of its own runs."""

import json
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.values import DECODER, RecordProblem, clean, expect
from harness_repo.runtime.trajectory import ToolCallRecord, Trajectory

Message = dict[str, Any]


def check_messages(value: Any) -> list[Message]:
    """Return the messages, contents as text; raises RecordProblem when it is not a conversation."""
    if not isinstance(value, list) or not value:
        raise RecordProblem(_("the conversation has no messages"))
    return [_check_message(message, number) for number, message in enumerate(value, 1)]


def build_trajectory(messages: list[Message]) -> dict[str, Any]:
    """Build the trajectory of a conversation: what was sent and called, and the last thing the agent said."""
    calls = _tool_calls(messages)
    return Trajectory(
        status="ok",
        reply=last_reply(messages) or None,
        messages=messages,
        skills_loaded=[_skill_name(call) for call in calls if call.name == "load_skill"],
        tool_calls=calls,
    ).to_dict()


def last_reply(messages: list[Message]) -> str:
    """Return the last text of the assistant, or an empty text."""
    return next((m["content"] for m in reversed(messages) if m["role"] == "assistant" and m["content"]), "")


def split_request(messages: list[Message]) -> dict[str, Any]:
    """Return the request: the first thing the user said, and no history before it."""
    first = next((message["content"] for message in messages if message["role"] == "user"), "")
    return {"danmaku": [{"user": "user", "text": first}] if first else [], "history": []}


def _check_message(message: Any, number: int) -> Message:
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise RecordProblem(_("message %(number)d is not an object with a role") % {"number": number})
    expect(message, "tool_calls", list, [])
    checked = {**message, "content": _text(message.get("content"))}
    if message["role"] == "assistant" and isinstance(message.get("function_call"), dict):
        # The shape before tools: one call, no id.
        checked["tool_calls"] = [{"id": "", "type": "function", "function": checked.pop("function_call")}]
    if message["role"] == "function":
        checked["role"] = "tool"
    return checked


def _text(content: Any) -> str | None:
    """Flatten content parts; what is not text is named, not dropped silently."""
    if content is None or isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content, ensure_ascii=False)
    return "\n".join(_part_text(part) for part in content)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return str(part["text"])
    return f"[{part.get('type', 'part') if isinstance(part, dict) else 'part'}]"


def _tool_calls(messages: list[Message]) -> list[ToolCallRecord]:
    """Pair calls with their results: by id, else in order within the turn."""
    records: list[ToolCallRecord] = []
    turn = 0
    for position, message in enumerate(messages):
        if message["role"] != "assistant":
            continue
        turn += 1
        calls = [call for call in message.get("tool_calls") or [] if isinstance(call, dict)]
        results = _results_after(messages, position)
        for number, call in enumerate(calls):
            records.append(_record(call, _result_of(call, number, results), turn))
    return records


def _results_after(messages: list[Message], position: int) -> list[Message]:
    """The tool messages between this message and the agent's next one."""
    results = []
    for message in messages[position + 1 :]:
        if message["role"] == "assistant":
            break
        if message["role"] == "tool":
            results.append(message)
    return results


def _result_of(call: Message, number: int, results: list[Message]) -> Message | None:
    for result in results:
        if call.get("id") and result.get("tool_call_id") == call["id"]:
            return result
    without_id = [result for result in results if not result.get("tool_call_id")]
    return without_id[number] if number < len(without_id) else None


def _record(call: Message, result: Message | None, turn: int) -> ToolCallRecord:
    function = call.get("function")
    function = function if isinstance(function, dict) else {}
    return ToolCallRecord(
        turn=turn,
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=_parsed(function.get("arguments")),
        result=None if result is None else _parsed(result["content"]),
        error="no_result" if result is None else _error(result["content"]),
        ms=0.0,
    )


def _parsed(text: Any) -> Any:
    """JSON inside a string as its value; anything else as it stands."""
    if not isinstance(text, str):
        return text
    try:
        value, end = DECODER.raw_decode(text.strip())
        return clean(value) if end == len(text.strip()) else text
    except (ValueError, RecursionError, RecordProblem):
        return text


def _error(content: str | None) -> str | None:
    """Tool results have no error field in this shape; by convention the text starts with the word."""
    return f"error: {content[:200]}" if content and content.lower().startswith("error") else None


def _skill_name(call: ToolCallRecord) -> str:
    return str(call.arguments.get("name", "")) if isinstance(call.arguments, dict) else ""
