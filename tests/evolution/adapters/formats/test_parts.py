from typing import Any

import pytest

from evolution.adapters.formats.parts import read_parts, render_content

URL = "https://example.com/a.png"


def call(name: str, arguments: Any, identity: str = "c1") -> dict[str, Any]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    "part",
    [
        "hi",
        {"type": "text", "text": "hi"},
        {"type": "input_text", "text": "hi"},
        {"type": "output_text", "text": "hi", "annotations": []},
        {"type": "text", "content": "hi"},
        {"type": "text", "text": {"value": "hi", "annotations": []}},
        {"text": "hi"},
        {"type": "refusal", "refusal": "hi"},
    ],
)
def test_texts_of_all_providers_are_texts(part: Any) -> None:
    assert read_parts([part]).text == "hi"


@pytest.mark.parametrize(
    "part",
    [
        {"type": "thinking", "thinking": "hm", "signature": "x"},
        {"type": "reasoning", "text": "hm"},
        {"type": "reasoning", "content": "hm"},
        {"type": "reasoning", "reasoning": "hm"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"text": "hm", "thought": True},
    ],
)
def test_thinking_is_no_text(part: Any) -> None:
    found = read_parts([part, {"type": "text", "text": "hi"}])
    assert (found.thoughts, found.text) == (["hm"], "hi")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_use", "id": "c1", "name": "find", "input": {"q": 1}},
        {"type": "tool_call", "id": "c1", "name": "find", "arguments": {"q": 1}},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "find", "input": {"q": 1}},
        {"type": "tool_call", "id": "c1", "name": "find", "args": {"q": 1}},
        {"type": "function_call", "id": "fc_9", "call_id": "c1", "name": "find", "arguments": {"q": 1}},
        {"function_call": {"id": "c1", "name": "find", "args": {"q": 1}}},
        {"functionCall": {"id": "c1", "name": "find", "args": {"q": 1}}},
    ],
)
def test_calls_of_all_providers_are_calls(part: Any) -> None:
    assert read_parts([part]).calls == [call("find", {"q": 1})]


@pytest.mark.parametrize(
    "part",
    [
        {"type": "tool_result", "tool_use_id": "c1", "content": "42"},
        {"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "42"}]},
        {"type": "tool_call_response", "id": "c1", "response": "42"},
        {"type": "tool_call_response", "id": "c1", "result": "42"},
        {"type": "tool-result", "toolCallId": "c1", "output": {"type": "text", "value": "42"}},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
        {"function_response": {"id": "c1", "response": "42"}},
    ],
)
def test_results_of_all_providers_are_tool_messages(part: Any) -> None:
    assert read_parts([part]).results == [{"role": "tool", "content": "42", "tool_call_id": "c1"}]


def test_a_failed_result_says_so() -> None:
    failed = {"type": "tool_result", "tool_use_id": "c1", "content": "no such link", "is_error": True}
    assert read_parts([failed]).results[0]["is_error"] is True


def test_a_part_with_call_and_result_is_both() -> None:
    part = {"type": "tool-find", "toolCallId": "c1", "input": {"q": 1}, "output": {"n": 3}}
    found = read_parts([part])
    assert found.calls == [call("find", {"q": 1})]
    assert found.results[0]["content"] == '{"n": 3}'


def test_what_is_of_no_known_kind_is_named() -> None:
    assert read_parts([{"type": "hologram", "x": 1}, {"type": "text", "text": "hi"}]).text == "[hologram]\nhi"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, None),
        ("hi", "hi"),
        ({"type": "text", "text": "hi"}, "hi"),
        (
            [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": URL}}],
            f"a\n[image: {URL}]",
        ),
        ([{"title": "x", "url": URL}], '[{"title": "x", "url": "https://example.com/a.png"}]'),
        ({"price": 89}, '{"price": 89}'),
        (12345678901234567890123, "12345678901234567890123"),
    ],
)
def test_a_content_is_told_as_text(content: Any, text: str | None) -> None:
    assert render_content(content) == text
