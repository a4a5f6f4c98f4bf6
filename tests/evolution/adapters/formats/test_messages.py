import pytest

from evolution.adapters.formats.messages import build_trajectory, check_messages, last_reply, split_request
from evolution.adapters.formats.values import RecordProblem


def call(name: str, identity: str, arguments: str = "{}") -> dict[str, object]:
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_results_find_their_calls_by_id() -> None:
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call("a", "1"), call("b", "2")]},
        {"role": "tool", "tool_call_id": "2", "content": '{"n": 2}'},
        {"role": "tool", "tool_call_id": "1", "content": '{"n": 1}'},
    ]
    calls = build_trajectory(check_messages(messages))["tool_calls"]
    assert [(entry["name"], entry["result"]) for entry in calls] == [("a", {"n": 1}), ("b", {"n": 2})]


def test_results_without_ids_are_taken_in_order() -> None:
    messages = [
        {"role": "assistant", "content": None, "function_call": {"name": "a", "arguments": '{"x": 1}'}},
        {"role": "function", "name": "a", "content": "3"},
        {"role": "assistant", "content": None, "function_call": {"name": "b", "arguments": "{"}},
    ]
    first, second = build_trajectory(check_messages(messages))["tool_calls"]
    assert (first["turn"], first["arguments"], first["result"]) == (1, {"x": 1}, 3)
    assert (second["turn"], second["arguments"], second["error"]) == (2, "{", "no_result")


def test_content_parts_become_text() -> None:
    parts = [{"type": "text", "text": "看图"}, {"type": "image_url", "image_url": {"url": "x"}}]
    (message,) = check_messages([{"role": "user", "content": parts}])
    assert message["content"] == "看图\n[image_url]"


def test_request_and_reply_of_a_conversation() -> None:
    messages = check_messages(
        [
            {"role": "system", "content": "policy"},
            {"role": "user", "content": "first"},
            {"role": "assistant", "content": "answer"},
            {"role": "user", "content": "bye"},
        ]
    )
    assert split_request(messages) == {"danmaku": [{"user": "user", "text": "first"}], "history": []}
    assert last_reply(messages) == "answer"
    assert build_trajectory(messages)["messages"][0]["content"] == "policy"


@pytest.mark.parametrize("messages", [None, [], "hi", [{"content": "no role"}], [3]])
def test_what_is_no_conversation_is_refused(messages: object) -> None:
    with pytest.raises(RecordProblem):
        check_messages(messages)


@pytest.mark.parametrize("calls", [5, True, "abc", {"a": 1}])
def test_tool_calls_that_are_no_list_are_refused(calls: object) -> None:
    with pytest.raises(RecordProblem, match="tool_calls"):
        check_messages([{"role": "assistant", "content": "x", "tool_calls": calls}])
