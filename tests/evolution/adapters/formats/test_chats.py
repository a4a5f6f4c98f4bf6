from typing import Any

import pytest

from evolution.adapters.formats.chats import find_chat, read_tools
from evolution.adapters.formats.messages import check_messages

HI = {"role": "user", "content": "hi"}
TOOL = {
    "type": "function",
    "function": {"name": "find", "description": "Finds.", "parameters": {"type": "object"}},
}


def said(value: Any, speaker: str = "user") -> list[tuple[str, str | None]]:
    messages = find_chat(value, speaker).messages
    return [(m["role"], m["content"]) for m in check_messages(messages)] if messages else []


@pytest.mark.parametrize(
    "value",
    [
        HI,
        [HI],
        [[HI]],
        '[{"role": "user", "content": "hi"}]',
        "[{'role': 'user', 'content': 'hi'}]",
        {"messages": [HI]},
        {"messages": '[{"role": "user", "content": "hi"}]'},
        {"input": {"messages": [HI]}, "model": "m"},
        {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        {"new_message": {"role": "user", "parts": [{"text": "hi"}]}},
        {"prompt": "hi"},
        {"model": "m", "input": "hi"},
        ["role='user' content='hi' name=None tool_calls=None"],
    ],
)
def test_what_was_sent_is_found_under_its_many_names(value: Any) -> None:
    assert said(value) == [("user", "hi")]


@pytest.mark.parametrize(
    "value",
    [
        {"choices": [{"message": {"content": "yes"}}]},
        {"choices": [{"text": "yes"}]},
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "yes"}]}}]},
        {"content": {"role": "model", "parts": [{"text": "yes"}]}, "finish_reason": "STOP"},
        {
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "yes"}]}
            ]
        },
        {"generations": [[{"text": "yes"}]]},
        {"text": "yes", "finishReason": "stop"},
        {"index": 0, "message": {"role": "assistant", "content": "yes"}},
    ],
)
def test_what_was_answered_is_found_too(value: Any) -> None:
    assert said(value, "assistant") == [("assistant", "yes")]


@pytest.mark.parametrize(
    "value", [None, "hi", 3, [], {}, {"latitude": 41.4}, [{"title": "x"}], ["hi"], {"args": [1]}]
)
def test_what_is_no_chat_has_no_messages(value: Any) -> None:
    assert find_chat(value).messages == []


def test_instructions_beside_the_messages_are_the_system_message() -> None:
    request = {
        "config": {"system_instruction": "be brief"},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
    }
    assert said(request) == [("system", "be brief"), ("user", "hi")]
    assert said({"system": "be brief", "messages": [{"role": "system", "content": "x"}]}) == [("system", "x")]


@pytest.mark.parametrize(
    "offered",
    [
        TOOL,
        TOOL["function"],
        {"name": "find", "description": "Finds.", "input_schema": {"type": "object"}},
        {
            "function_declarations": [
                {"name": "find", "description": "Finds.", "parameters": {"type": "object"}}
            ]
        },
        {"type": "function", "name": "find", "description": "Finds.", "inputSchema": {"type": "object"}},
        '{"name": "find", "description": "Finds.", "parameters_json_schema": {"type": "object"}}',
    ],
)
def test_tools_are_defined_as_openai_does(offered: Any) -> None:
    assert read_tools([offered, {"no": "name"}, 3]) == [TOOL]


def test_tools_that_a_tracer_logged_as_messages_are_tools() -> None:
    chat = find_chat([HI, {"role": "tool", "content": TOOL}])
    assert (chat.messages, chat.tools) == ([HI], [TOOL])


def test_code_in_a_log_is_not_run() -> None:
    assert find_chat("[{'role': 'user', 'content': __import__('os').getcwd()}]").messages == []
