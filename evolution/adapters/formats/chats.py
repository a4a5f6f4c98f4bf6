"""Finds the chat in what a program logged as its input or output: messages under one of many names, or a bare text.

The messages are as their source has them; `messages.check_messages` reads them.
"""

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from evolution.adapters.formats.shapes import as_dict, as_list, as_text, kind_of, unpack_json

Message = dict[str, Any]
# Larger texts are no log of a Python value; reading them would take a lot of memory.
_LONGEST_REPR = 2**20
# role='user' content='…' name=None …, as pydantic models print themselves
_REPR = re.compile(r"(?:Message\()?role=(['\"])(\w+)\1,? content=")
_REPR_CALLS = re.compile(r" tool_calls=(\[.*?\])(?:,? \w+=|\)$)")
_REPR_ID = re.compile(r" tool_call_id='([^']*)'")
_LISTS = ("messages", "contents", "input_messages", "output_messages", "chat_history", "message")
_SINGLE = ("new_message", "message", "content", "response", "output", "result")
_LONGEST_NESTING = 4


class Chat(NamedTuple):
    """Messages, and the tools that the agent was offered, as OpenAI defines them."""

    messages: list[Message]
    tools: list[Message]


NONE = Chat([], [])


def find_chat(value: Any, speaker: str = "user") -> Chat:
    """The chat in a logged value; none where it holds no messages. A text without a role is the speaker's.

    A bare text is no chat: whether it is what somebody said, only the caller can know.
    """
    return _find(unpack_value(value), speaker, 0)


def unpack_value(value: Any) -> Any:
    """JSON in a text, or Python's notation of an object, as a value."""
    unpacked = unpack_json(value)
    if isinstance(unpacked, str) and unpacked[:2] in {"{'", "[{", "['"} and len(unpacked) <= _LONGEST_REPR:
        try:
            return ast.literal_eval(unpacked)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return value
    return unpacked


def _find(value: Any, speaker: str, depth: int) -> Chat:
    if depth > _LONGEST_NESTING:
        return NONE
    if isinstance(value, list):
        return _find_in_list(value, speaker, depth)
    if isinstance(value, dict):
        return _find_in_object(value, speaker, depth)
    return NONE


def _find_in_list(value: list[Any], speaker: str, depth: int) -> Chat:
    if len(value) == 1 and isinstance(value[0], list):
        # LangChain logs a batch of conversations.
        return _find(value[0], speaker, depth + 1)
    if value and all(isinstance(entry, dict) and _is_vercel_call(entry) for entry in value):
        return Chat([{"role": "assistant", "content": value}], [])
    found = [_read_entry(entry) for entry in value]
    messages = [message for message in found if message is not None]
    if not messages or len(messages) < len(found):
        return NONE
    offered = [message for message in messages if _is_offer(message)]
    said = [message for message in messages if not _is_offer(message)]
    return Chat(said, read_tools([message["content"] for message in offered]))


def _read_entry(entry: Any) -> Message | None:
    """A message of a list, or None for an entry that is none."""
    if isinstance(entry, str):
        return _read_repr(entry)
    if not isinstance(entry, dict):
        return None
    if isinstance(entry.get("kwargs"), dict) and isinstance(entry.get("id"), list) and entry["id"]:
        # A message that LangChain serialised: the class is the last part of its id.
        return {**entry["kwargs"], "role": as_text(entry["id"][-1])}
    return entry if _is_message(entry) else None


def _is_message(value: Mapping[str, Any]) -> bool:
    has_body = any(
        name in value
        for name in (
            "content",
            "parts",
            "tool_calls",
            "text",
            "function_call",
            "refusal",
            "reasoning_content",
        )
    )
    if isinstance(value.get("role"), str):
        return has_body
    kind = kind_of(value)
    if kind in {"human", "ai", "system", "tool", "HumanMessage", "AIMessage", "AIMessageChunk"}:
        return has_body
    return kind in {"function_call", "function_call_output", "reasoning"}


def _is_vercel_call(value: Mapping[str, Any]) -> bool:
    return "toolCallId" in value and "toolName" in value and "role" not in value


def _is_offer(message: Mapping[str, Any]) -> bool:
    """LangChain's tracer logs a tool that was offered as a message of a tool."""
    content = as_dict(message.get("content"))
    return message.get("role") == "tool" and "parameters" in as_dict(content.get("function"))


def _read_repr(text: str) -> Message | None:
    """A message that was logged as Python prints it."""
    start = _REPR.match(text)
    if start is None or len(text) > _LONGEST_REPR:
        return None
    content, end = _read_literal(text, start.end())
    message: Message = {"role": start[2], "content": content}
    if calls := _REPR_CALLS.search(text, end):
        value, _end = _read_literal(text, calls.start(1), calls.end(1))
        message["tool_calls"] = as_list(value)
    if identity := _REPR_ID.search(text, end):
        message["tool_call_id"] = identity[1]
    return message


def _read_literal(text: str, start: int, end: int | None = None) -> tuple[Any, int]:
    """The Python value that stands there, and where it ends; None for what can't be read."""
    if text[start : start + 1] in {"'", '"'}:
        quote = text[start]
        literal = re.compile(rf"{quote}(?:[^{quote}\\]|\\.)*{quote}", re.DOTALL).match(text, start)
        end = literal.end() if literal else len(text)
    piece = text[start : text.find(" ", start) if end is None else end]
    try:
        return ast.literal_eval(piece), start + len(piece)
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None, start + len(piece)


def _find_in_object(value: Message, speaker: str, depth: int) -> Chat:
    entry = _read_entry(value)
    if entry is not None:
        return Chat([entry], [])
    for find in _FINDERS:
        chat = find(value, speaker, depth)
        if chat.messages:
            return Chat(
                [*_find_system(value, chat), *chat.messages], chat.tools or read_tools(_offered(value))
            )
    return NONE


def _find_system(value: Message, chat: Chat) -> list[Message]:
    """The instructions that providers take beside the messages."""
    config = as_dict(value.get("config"))
    told = next(
        (
            told
            for told in (
                value.get("system"), value.get("system_instruction"), value.get("systemInstruction"),
                value.get("instructions"), config.get("system_instruction"),
            )
            if told
        ),
        None,
    )  # fmt: skip
    if told is None or any(message.get("role") in {"system", "developer"} for message in chat.messages):
        return []
    parts = told.get("parts") if isinstance(told, dict) else told
    return [{"role": "system", "content": parts}]


def _offered(value: Message) -> list[Any]:
    config = as_dict(value.get("config"))
    kept = as_dict(value.get("invocation_params"))
    return next(
        (
            tools
            for tools in (value.get("tools"), config.get("tools"), kept.get("tools"), value.get("functions"))
            if isinstance(tools, list)
        ),
        [],
    )


def read_tools(offered: list[Any]) -> list[Message]:
    """Definitions of tools as OpenAI has them; what is no definition is left out."""
    tools: list[Message] = []
    for entry in map(unpack_value, offered):
        declared = as_list(as_dict(entry).get("function_declarations")) or [entry]
        tools += [tool for each in declared if (tool := _read_tool(as_dict(each)))]
    return tools


def _read_tool(given: Message) -> Message | None:
    function = given.get("function") if isinstance(given.get("function"), dict) else given
    name = as_text(as_dict(function).get("name"))
    if not name or not isinstance(function, dict):
        return None
    names = ("parameters", "input_schema", "inputSchema", "parameters_json_schema")
    schema = next((function[key] for key in names if isinstance(function.get(key), dict)), None)
    defined: Message = {"name": name}
    if text := as_text(function.get("description")):
        defined["description"] = text
    if schema is not None:
        defined["parameters"] = schema
    return {"type": "function", "function": defined}


def _find_lists(value: Message, speaker: str, depth: int) -> Chat:
    """Messages under the usual names."""
    for name in _LISTS:
        if isinstance(value.get(name), list | str):
            chat = _find(unpack_value(value[name]), speaker, depth + 1)
            if chat.messages:
                return chat
    return NONE


def _find_prompt(value: Message, _speaker: str, _depth: int) -> Chat:
    """A prompt alone, as the Vercel SDK and completions take it; Responses take an `input` with instructions."""
    prompt = value.get("prompt") or (
        value.get("input") if "instructions" in value or "model" in value else None
    )
    if isinstance(prompt, str) and prompt:
        return Chat([{"role": "user", "content": prompt}], [])
    return _find(unpack_value(prompt), "user", 1)


def _find_choices(value: Message, _speaker: str, depth: int) -> Chat:
    """A chat completion; of several choices the first."""
    choice = as_dict(next(iter(as_list(value.get("choices"))), None))
    if isinstance(choice.get("message"), dict):
        return _find({"role": "assistant", **choice["message"]}, "assistant", depth + 1)
    text = choice.get("text")
    return Chat([{"role": "assistant", "content": text}], []) if isinstance(text, str) else NONE


def _find_candidates(value: Message, _speaker: str, depth: int) -> Chat:
    """A response of Gemini."""
    candidate = as_dict(next(iter(as_list(value.get("candidates"))), None))
    return _find(as_dict(candidate.get("content")), "assistant", depth + 1)


def _find_generations(value: Message, _speaker: str, depth: int) -> Chat:
    """LangChain's result of a model call."""
    generation: Any = value.get("generations")
    while isinstance(generation, list) and generation:
        generation = generation[0]
    generation = as_dict(generation)
    found = _find(as_dict(generation.get("message")), "assistant", depth + 1)
    text = generation.get("text")
    return found if found.messages else _say(text)


def _find_sdk_output(value: Message, _speaker: str, _depth: int) -> Chat:
    """What the Vercel SDK answers: {"text", "toolCalls"}."""
    calls, text = unpack_value(value.get("toolCalls")), value.get("text")
    if not isinstance(calls, list) and not (isinstance(text, str) and "finishReason" in value):
        return NONE
    parts = ([{"type": "text", "text": text}] if text else []) + as_list(calls)
    return Chat([{"role": "assistant", "content": parts}], []) if parts else NONE


def _find_single(value: Message, speaker: str, depth: int) -> Chat:
    """One message, or again an object with messages, under a name."""
    for name in _SINGLE:
        if isinstance(value.get(name), dict | list):
            chat = _find(value[name], speaker, depth + 1)
            if chat.messages:
                return chat
    return NONE


def _say(text: Any) -> Chat:
    return Chat([{"role": "assistant", "content": text}], []) if isinstance(text, str) and text else NONE


_FINDERS: tuple[Callable[[Message, str, int], Chat], ...] = (
    _find_lists,
    _find_choices,
    _find_candidates,
    _find_generations,
    _find_sdk_output,
    _find_prompt,
    _find_single,
)
