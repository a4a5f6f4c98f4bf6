import pytest
from hypothesis import given
from hypothesis import strategies as st

from evolution.adapters.completions import clean_text, read_reply
from harness_repo.runtime.chat import ChatError, ToolCall, Usage
from tests.evolution.adapters.misbehaving import completion

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["choices", "message", "content", "tool_calls", "function", "name", "error", "usage", "code", "type"]
COMPLETIONS = st.recursive(
    JSON, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner)
)


@given(COMPLETIONS, JSON)
def test_any_answer_is_a_reply_or_a_chat_error(answer: object, content: object) -> None:
    for anything in (answer, {"choices": [answer]}, completion({"content": content})):
        try:
            reply = read_reply(anything, 1.0)
        except ChatError:
            continue
        assert isinstance(reply.content, str) or reply.tool_calls


def test_usage_that_cannot_be_costs_no_reply() -> None:
    usage = {
        "prompt_tokens": "many",
        "completion_tokens": float("inf"),
        "prompt_tokens_details": {"cached_tokens": -1},
    }
    assert read_reply(completion({"content": "x"}, usage=usage), 1.0).usage == Usage(0, 0, 0)


def test_tool_calls_are_read_also_when_the_arguments_are_an_object() -> None:
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": {"y": "二"}}},
        {"id": None, "function": {"name": "h"}},
    ]
    reply = read_reply(completion({"content": None, "tool_calls": calls}, "tool_calls"), 1.0)
    expected = [ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", '{"y": "二"}'), ToolCall("", "h", "{}")]
    assert (reply.content, reply.tool_calls, reply.finish_reason) == (None, expected, "tool_calls")


def test_half_a_surrogate_pair_becomes_the_replacement_character() -> None:
    assert clean_text("a\ud83d b\U0001f600") == "a\ufffd b\U0001f600"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"code": 429, "message": "busy"}, "rate_limit"),
        ({"code": 401, "message": "no"}, "configuration"),
        ({"code": "odd", "message": "no"}, "bad_response"),
        ("busy", "bad_response"),
    ],
)
def test_error_sent_with_status_200_keeps_its_kind(error: object, kind: str) -> None:
    with pytest.raises(ChatError, match=r"busy|no") as raised:
        read_reply({"error": error}, 1.0)
    assert raised.value.kind == kind


def test_tokens_read_from_a_cache_are_part_of_the_prompt() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 500}}
    answer = {"choices": [{"message": {"content": "a"}}], "usage": usage}
    assert read_reply(answer, 1.0).usage.cached_tokens == 10
