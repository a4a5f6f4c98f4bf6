"""Chat messages of any provider's shape as OpenAI's, and as a trajectory/1, the record that the runtime writes.

Thinking is kept apart: between reading and building it stands in a message's `reasoning`, then in the trajectory's
`calls`, never in what was said. A tool message of a call that failed has `is_error` until then.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from evolution.adapters.formats.calls import Message, is_call, read_call, read_calls_in_text
from evolution.adapters.formats.media import refer_to, replace_data
from evolution.adapters.formats.pairing import pair_calls
from evolution.adapters.formats.parts import THINKING, Parts, read_parts, read_result, render_content
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, kind_of
from evolution.adapters.formats.values import RecordProblem, expect
from evolution.adapters.reasoning import split_thinking
from harness_repo.runtime.trajectory import CallRecord, Status, ToolCallRecord, Trajectory, sum_usage

__all__ = [
    "Conversation",
    "Message",
    "build_trajectory",
    "check_messages",
    "conversation",
    "last_reply",
    "split_request",
]

# A source's word for a role -> OpenAI's; LangChain's messages have a type instead.
_ROLES = {
    "human": "user", "humanmessage": "user", "humanmessagechunk": "user", "customer": "user",
    "ai": "assistant", "aimessage": "assistant", "aimessagechunk": "assistant", "model": "assistant",
    "bot": "assistant", "chatbot": "assistant", "gpt": "assistant", "agent": "assistant",
    "systemmessage": "system", "systemmessagechunk": "system", "developermessage": "developer",
    "function": "tool", "functionmessage": "tool", "toolmessage": "tool", "toolmessagechunk": "tool",
    "observation": "tool", "tool_response": "tool", "tool_result": "tool", "toolresult": "tool", "ipython": "tool",
}  # fmt: skip
_TYPES = frozenset({"human", "ai", "system", "tool", "function", "developer"}) | {
    name for name in _ROLES if "message" in name
}
_USUAL = frozenset({"system", "developer", "user", "assistant", "tool"})
# Messages of nothing but these fields, all texts, are read without looking further.
_PLAIN = frozenset({"role", "content", "name", "tool_call_id"})
# Kept between reading and building, and in no trajectory.
_INNER = ("reasoning", "is_error")


class Conversation(NamedTuple):
    """What a case takes from a conversation."""

    request: dict[str, Any]
    reply: str
    trajectory: dict[str, Any]


def check_messages(value: Any) -> list[Message]:
    """Return the messages in OpenAI's shape, contents as text; raises RecordProblem when it is not a conversation.

    A message whose parts are the results of several calls becomes several tool messages. Images, audio and files
    become references (see `media`), and of other fields than OpenAI's nothing stays.
    """
    if not isinstance(value, list) or not value:
        raise RecordProblem(_("the conversation has no messages"))
    messages: list[Message] = []
    for number, message in enumerate(value, 1):
        for read in _read_message(message, number):
            if messages and _continues(messages[-1], read, message):
                messages[-1] = _join(messages[-1], read)
            else:
                messages.append(read)
    return messages


def conversation(
    messages: list[Message],
    *,
    calls: Sequence[CallRecord] = (),
    errors: Mapping[str, str] | None = None,
    is_clean: bool = False,
) -> Conversation:
    """Return request, reply and trajectory of messages that have been checked; see `build_trajectory`."""
    trajectory = build_trajectory(messages, calls=calls, errors=errors, is_clean=is_clean)
    return Conversation(split_request(messages), last_reply(messages), trajectory)


def build_trajectory(
    messages: list[Message],
    *,
    calls: Sequence[CallRecord] = (),
    errors: Mapping[str, str] | None = None,
    status: Status = "ok",
    error: str = "",
    latency_ms: float = 0.0,
    is_clean: bool = False,
) -> dict[str, Any]:
    """Build the trajectory of checked messages: what was sent and called, and the last thing the agent said.

    `calls` are the model calls where the source has them; `errors` says of calls of tools, by id, how they failed.
    `is_clean` says that all texts and numbers are known to be fit for PostgreSQL; see `values.clean`.
    """
    tool_calls = pair_calls(messages, errors or {})
    made = _add_thoughts(calls, messages)
    trajectory = Trajectory(
        status=status,
        reply=last_reply(messages) or None,
        messages=[_strip(message) for message in messages],
        skills_loaded=[_skill_name(call) for call in tool_calls if call.name == "load_skill"],
        tool_calls=tool_calls,
        calls=made,
        usage=sum_usage(made),
        latency_ms=latency_ms,
        finish_reason=made[-1].finish_reason if made else "",
        error=error or None,
    )
    return trajectory.to_fields() if is_clean else trajectory.to_dict()


def last_reply(messages: list[Message]) -> str:
    """Return the last text of the assistant, or an empty text."""
    return next((m["content"] for m in reversed(messages) if m["role"] == "assistant" and m["content"]), "")


def split_request(messages: list[Message]) -> dict[str, Any]:
    """Return the request: the first thing the user said, and no history before it."""
    first = next((m["content"] for m in messages if m["role"] == "user" and m["content"]), "")
    return {"danmaku": [{"user": "user", "text": first}] if first else [], "history": []}


def _read_message(message: Any, number: int) -> list[Message]:
    if not isinstance(message, dict):
        raise RecordProblem(_("message %(number)d is not an object with a role") % {"number": number})
    role = _read_role(message)
    if role is None:
        return [_read_item(message, number)]
    content = message.get("content")
    if role in _USUAL and isinstance(content, str) and _PLAIN.issuperset(message):
        return [_read_plain(role, content, message)]
    return _read_rich(role, message, number)


def _read_role(message: Message) -> str | None:
    said = message.get("role")
    if not isinstance(said, str):
        kind = kind_of(message)
        if kind.lower() not in _TYPES or is_call(message):
            return None
        said = kind
    return said if said in _USUAL else _ROLES.get(said.lower(), said)


def _read_item(item: Message, number: int) -> Message:
    """An item of OpenAI's Responses, which has a type where messages have a role."""
    if is_call(item):
        return {"role": "assistant", "content": None, "tool_calls": [read_call(item)]}
    if (result := read_result(item)) is not None:
        return result
    if kind_of(item) in THINKING:
        return {"role": "assistant", "content": None, "reasoning": "\n".join(read_parts([item]).thoughts)}
    raise RecordProblem(_("message %(number)d is not an object with a role") % {"number": number})


def _read_plain(role: str, content: str, message: Message) -> Message:
    read: Message = {"role": role, "content": replace_data(content)}
    for name in ("name", "tool_call_id"):
        if message.get(name):
            read[name] = as_text(message[name])
    return _refine(read)


def _read_rich(role: str, message: Message, number: int) -> list[Message]:
    parts = _sort_content(message)
    calls = [*_read_calls(message, number), *parts.calls]
    read: Message = {"role": role, "content": _read_text(role, message, parts)}
    if calls:
        read["tool_calls"] = calls
    if name := as_text(message.get("name")):
        read["name"] = name
    if thoughts := [*_read_thoughts(message), *parts.thoughts]:
        read["reasoning"] = "\n\n".join(filter(None, thoughts))
    if role == "tool":
        read |= _read_result_fields(message)
    own = [] if parts.results and read["content"] is None and not calls else [_refine(read)]
    return [*own, *parts.results] if role == "assistant" else [*parts.results, *own]


def _sort_content(message: Message) -> Parts:
    content = message.get("content")
    if isinstance(content, list):
        return read_parts(content)
    # Gemini and OpenTelemetry have them under that name.
    return read_parts(as_list(message.get("parts"))) if content is None else Parts()


def _read_text(role: str, message: Message, parts: Parts) -> str | None:
    content = message.get("content")
    text = parts.text if isinstance(content, list) or content is None else render_content(content)
    if isinstance(content, list) and text is None and not (parts.calls or parts.results):
        text = ""
    if text is None and role == "assistant":
        text = as_text(message.get("refusal")) or _read_audio(message) or None
    if text is None and isinstance(message.get("text"), str):
        text = message["text"]
    images = [refer_to({"type": "image", "data": image}) for image in as_list(message.get("images")) if image]
    return "\n".join(filter(None, [text, *images])) if images else text


def _read_audio(message: Message) -> str:
    audio = as_dict(message.get("audio"))
    return as_text(audio.get("transcript")) or (refer_to({"type": "audio", **audio}) or "" if audio else "")


def _read_thoughts(message: Message) -> list[str]:
    names = ("reasoning_content", "reasoning", "thinking")
    return [text for name in names if isinstance(text := message.get(name), str) and text][:1]


def _read_calls(message: Message, number: int) -> list[Message]:
    """The calls beside a message's content: of today, of the time before tools, and where LangChain keeps them."""
    kept = as_dict(message.get("additional_kwargs"))
    calls = expect(message, "tool_calls", list, []) or expect(message, "toolCalls", list, [])
    calls = [*(calls or as_list(kept.get("tool_calls"))), *as_list(message.get("invalid_tool_calls"))]
    if not all(isinstance(call, dict) for call in calls):
        raise RecordProblem(_("message %(number)d: a tool call is not an object") % {"number": number})
    old = message.get("function_call") or kept.get("function_call")
    if isinstance(old, dict):
        # The shape before tools: one call, no id.
        calls.append({"id": "", "function": old})
    return [read_call(call) for call in calls]


def _read_result_fields(message: Message) -> Message:
    identity = next(
        (
            as_text(message[name])
            for name in ("tool_call_id", "toolCallId", "call_id", "tool_use_id")
            if message.get(name)
        ),
        "",
    )
    failed = message.get("is_error") or message.get("isError") or message.get("status") == "error"
    return {"tool_call_id": identity, **({"is_error": True} if failed else {})}


def _refine(message: Message) -> Message:
    """The message with what stands in its text taken out of it: thinking in tags, calls written as JSON."""
    content = message["content"]
    if not content or message["role"] not in {"assistant", "tool"}:
        return message
    if calls := read_calls_in_text(content):
        return {"role": "assistant", "content": None, "tool_calls": [*message.get("tool_calls", ()), *calls]}
    if message["role"] == "assistant" and ("think" in content or "thought" in content):
        said, thought = split_thinking(content)
        if thought:
            beside = message.get("reasoning")
            return {**message, "content": said, "reasoning": f"{beside}\n\n{thought}" if beside else thought}
    return message


def _continues(before: Message, message: Message, source: Mapping[str, Any]) -> bool:
    """Say whether a message belongs to the turn before it: thinking alone, and items that each have one call."""
    if before["role"] != "assistant" or message["role"] != "assistant":
        return False
    is_thought = before["content"] is None and "tool_calls" not in before and "reasoning" in before
    return is_thought or ("role" not in source and is_call(dict(source)))


def _join(before: Message, message: Message) -> Message:
    joined = {**before, **{name: value for name, value in message.items() if value is not None}}
    if calls := [*before.get("tool_calls", ()), *message.get("tool_calls", ())]:
        joined["tool_calls"] = calls
    if thoughts := [text for text in (before.get("reasoning"), message.get("reasoning")) if text]:
        joined["reasoning"] = "\n\n".join(thoughts)
    return joined


def _add_thoughts(calls: Sequence[CallRecord], messages: list[Message]) -> list[CallRecord]:
    """The model calls with what the messages have of thinking; a turn without a call gets one that says no more."""
    said = [message for message in messages if message["role"] == "assistant"]
    thoughts = {turn: m["reasoning"] for turn, m in enumerate(said, 1) if m.get("reasoning")}
    if not thoughts:
        return list(calls)
    made = [
        replace(call, reasoning=call.reasoning or thoughts.pop(call.turn)) if call.turn in thoughts else call
        for call in calls
    ]
    made += [CallRecord(turn, 0.0, 0, 0, "", reasoning=text) for turn, text in thoughts.items()]
    return sorted(made, key=lambda call: call.turn)


def _strip(message: Message) -> Message:
    if not any(name in message for name in _INNER):
        return message
    return {name: value for name, value in message.items() if name not in _INNER}


def _skill_name(call: ToolCallRecord) -> str:
    return str(call.arguments.get("name", "")) if isinstance(call.arguments, dict) else ""
