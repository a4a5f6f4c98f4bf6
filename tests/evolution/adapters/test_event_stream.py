import json

import pytest

from evolution.adapters.completions import read_reply
from evolution.adapters.event_stream import is_event_stream, join_stream
from harness_repo.runtime.chat import ToolCall, Usage


def events(*chunks: object, end: str = "data: [DONE]\n\n") -> bytes:
    return ("".join(f"data: {json.dumps(chunk)}\r\n\r\n" for chunk in chunks) + end).encode()


def delta(finish_reason: str | None = None, **parts: object) -> dict[str, object]:
    return {"model": "m-1", "choices": [{"index": 0, "delta": parts, "finish_reason": finish_reason}]}


def test_text_and_reasoning_are_put_together() -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    body = events(
        delta(role="assistant", reasoning_content="h"), delta(reasoning_content="m"), delta(content="你"),
        delta(content="好"), delta("stop"), usage,
    )  # fmt: skip
    reply = read_reply(join_stream(b": comment\n\n" + body), 1.0)
    assert (reply.content, reply.reasoning, reply.finish_reason) == ("你好", "hm", "stop")
    assert (reply.usage, reply.model) == (Usage(7, 3), "m-1")


def test_tool_calls_are_put_together_by_their_index() -> None:
    first = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":'}}
    second = {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{}"}}
    rest = {"index": 0, "function": {"arguments": " 1}"}}
    body = events(
        delta(tool_calls=[first]), delta(tool_calls=[second]), delta("tool_calls", tool_calls=[rest])
    )
    reply = read_reply(join_stream(body), 1.0)
    assert reply.tool_calls == [ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "g", "{}")]
    assert reply.content is None


def test_stream_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="ends before"):
        join_stream(events(delta(content="half"), end=""))
    assert join_stream(events(delta("stop", content="whole"), end=""))["choices"]


def test_stream_is_told_by_its_type_or_its_beginning() -> None:
    assert is_event_stream("text/event-stream; charset=utf-8", b"")
    assert is_event_stream("application/json", b"\ndata: {}")
    assert not is_event_stream("application/json", b'{"data": 1}')
