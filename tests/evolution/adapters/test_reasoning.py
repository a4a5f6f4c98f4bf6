import pytest

from evolution.adapters.completions import read_reply
from evolution.adapters.reasoning import split_thinking
from harness_repo.runtime.chat import ChatError
from tests.evolution.adapters.misbehaving import completion


@pytest.mark.parametrize(
    ("message", "content", "reasoning"),
    [
        # DeepSeek, older vLLM; newer vLLM and OpenRouter; Mistral; models served without a reasoning parser.
        ({"content": "hi", "reasoning_content": "hm"}, "hi", "hm"),
        ({"content": "hi", "reasoning": "hm"}, "hi", "hm"),
        (
            {
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
                    {"type": "text", "text": "hi"},
                ]
            },
            "hi",
            "hm",
        ),
        ({"content": "<think>\nhm\n</think>\n\nhi"}, "hi", "hm"),
        ({"content": "<think>b</think>hi", "reasoning_content": "a"}, "hi", "a\n\nb"),
        # An object of settings is no reasoning.
        ({"content": "hi", "reasoning": {"effort": "low"}}, "hi", ""),
    ],
)
def test_reasoning_is_kept_apart(message: dict[str, object], content: str, reasoning: str) -> None:
    reply = read_reply(completion(message), 1.0)
    assert (reply.content, reply.reasoning) == (content, reasoning)


@pytest.mark.parametrize(
    ("text", "said", "thought"),
    [
        ("plain", "plain", ""),
        ("<thinking>hm</thinking> hi", "hi", "hm"),
        # The template has written the opening tag.
        ("hm, well\n</think>\n\nhi", "hi", "hm, well"),
        # Cut off while thinking.
        ("<think>hm, well", "", "hm, well"),
        # About tags, not in them.
        ('{"quote": "</think>"}', '{"quote": "</think>"}', ""),
        ("Use <think>x</think> here", "Use <think>x</think> here", ""),
        ("<think></think>\n\nhi", "hi", ""),
    ],
)
def test_thinking_in_tags_is_split_off(text: str, said: str, thought: str) -> None:
    assert split_thinking(text) == (said, thought)


def test_thinking_without_an_answer_is_no_reply_unless_tokens_ran_out() -> None:
    message = {"content": None, "reasoning_content": "hm"}
    cut = read_reply(completion(message, "length"), 1.0)
    assert (cut.content, cut.reasoning, cut.finish_reason) == ("", "hm", "length")
    with pytest.raises(ChatError, match="neither text nor tool calls"):
        read_reply(completion(message), 1.0)


def test_reasoning_beside_tool_calls_leaves_the_content_empty() -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": "{}"}}
    reply = read_reply(completion({"content": None, "reasoning_content": "hm", "tool_calls": [call]}), 1.0)
    assert (reply.content, reply.reasoning, len(reply.tool_calls)) == (None, "hm", 1)
