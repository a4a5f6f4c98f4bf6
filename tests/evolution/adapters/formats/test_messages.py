from typing import Any

import pytest

from evolution.adapters.formats.messages import (
    build_trajectory,
    check_messages,
    conversation,
    last_reply,
    split_request,
)
from evolution.adapters.formats.values import RecordProblem
from harness_repo.runtime.trajectory import CallRecord


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
    assert message["content"] == "看图\n[image: x]"


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


def test_fields_of_other_programs_do_not_stay() -> None:
    message = {
        "role": "user",
        "content": "hi",
        "timestamp": 3,
        "weight": 1,
        "name": None,
        "metadata": {"a": 1},
    }
    assert check_messages([message]) == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("role", "ours"),
    [
        ("human", "user"), ("ai", "assistant"), ("model", "assistant"), ("gpt", "assistant"), ("function", "tool"),
        ("observation", "tool"), ("developer", "developer"), ("User", "User"), ("critic", "critic"),
    ],
)  # fmt: skip
def test_roles_are_named_as_openai_does(role: str, ours: str) -> None:
    assert check_messages([{"role": role, "content": "hi"}])[0]["role"] == ours


def test_several_system_messages_stay_as_they_are() -> None:
    messages = [{"role": role, "content": role} for role in ("system", "developer", "user", "system")]
    assert [m["role"] for m in check_messages(messages)] == ["system", "developer", "user", "system"]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "hi", "reasoning_content": "hm"},
        {"content": "hi", "reasoning": "hm"},
        {"content": "<think>hm</think>\n\nhi"},
        {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "hi"}]},
    ],
)
def test_thinking_stands_beside_the_call_of_its_turn_alone(message: dict[str, Any]) -> None:
    messages = check_messages([{"role": "user", "content": "?"}, {"role": "assistant", **message}])
    record = build_trajectory(messages)
    assert record["messages"][1] == {"role": "assistant", "content": "hi"}
    assert [(call["turn"], call["reasoning"]) for call in record["calls"]] == [(1, "hm")]


def test_thinking_joins_the_call_that_the_source_has() -> None:
    messages = check_messages([{"role": "assistant", "content": "hi", "reasoning": "hm"}])
    made = build_trajectory(messages, calls=[CallRecord(1, 20.0, 3, 4, "m")])["calls"]
    assert [(call["prompt_tokens"], call["reasoning"]) for call in made] == [(3, "hm")]


def test_what_a_user_writes_in_tags_is_no_thinking() -> None:
    text = "<think>is a tag</think> of what?"
    assert check_messages([{"role": "user", "content": text}])[0]["content"] == text


@pytest.mark.parametrize(
    "arguments", ['{"n":  12345678901234567890123}', {"n": 12345678901234567890123}, "{", None]
)
def test_arguments_are_kept_exactly(arguments: Any) -> None:
    made = {"id": "1", "type": "function", "function": {"name": "a", "arguments": arguments}}
    (message,) = check_messages([{"role": "assistant", "content": None, "tool_calls": [made]}])
    assert message["tool_calls"] == [made]
    assert message["content"] is None


def test_integers_beyond_64_bits_are_not_rounded() -> None:
    messages = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call("a", "1", '{"id": 12345678901234567890123}')],
        },
        {"role": "tool", "tool_call_id": "1", "content": '{"id": 98765432109876543210987}'},
    ]
    (entry,) = build_trajectory(check_messages(messages))["tool_calls"]
    assert entry["arguments"] == {"id": 12345678901234567890123}
    assert entry["result"] == {"id": 98765432109876543210987}


def test_results_in_the_parts_of_a_users_message_become_tool_messages() -> None:
    parts = [
        {"type": "tool_result", "tool_use_id": "2", "content": "B", "is_error": True},
        {"type": "tool_result", "tool_use_id": "1", "content": "A"},
        {"type": "text", "text": "and now?"},
    ]
    used = [{"type": "tool_use", "id": str(n), "name": f"t{n}", "input": {}} for n in (1, 2)]
    messages = check_messages([{"role": "assistant", "content": used}, {"role": "user", "content": parts}])
    record = build_trajectory(messages)
    assert [m["role"] for m in record["messages"]] == ["assistant", "tool", "tool", "user"]
    assert [(c["result"], c["error"]) for c in record["tool_calls"]] == [("A", None), ("B", "error: B")]
    assert "is_error" not in record["messages"][1]


def test_items_of_responses_are_turns() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "price?"}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "id": "fc", "call_id": "c1", "name": "a", "arguments": "{}"},
        {"type": "function_call", "id": "fd", "call_id": "c2", "name": "b", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "89"},
        {"type": "function_call_output", "call_id": "c2", "output": "7"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "89"}]},
    ]
    record = conversation(check_messages(items)).trajectory
    assert [m["role"] for m in record["messages"]] == ["user", "assistant", "tool", "tool", "assistant"]
    assert [(c["turn"], c["name"], c["result"]) for c in record["tool_calls"]] == [(1, "a", 89), (1, "b", 7)]
    assert record["calls"][0]["reasoning"] == "hm"


def test_messages_of_langchain_have_a_type_and_no_role() -> None:
    messages = check_messages(
        [
            {"type": "human", "content": "hi"},
            {"type": "ai", "content": "", "tool_calls": [{"name": "a", "args": {"x": 1}, "id": "1"}]},
            {"type": "tool", "content": "no", "tool_call_id": "1", "status": "error"},
        ]
    )
    (entry,) = build_trajectory(messages)["tool_calls"]
    assert (entry["arguments"], entry["result"], entry["error"]) == ({"x": 1}, "no", "error: no")


def test_a_call_that_is_no_object_is_refused_with_its_message() -> None:
    with pytest.raises(RecordProblem, match="message 2"):
        check_messages(
            [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": ["a"]}]
        )


def test_no_bytes_of_an_image_stay() -> None:
    address = "data:image/png;base64," + "iVBORw0K" * 1000
    parts = [{"type": "image_url", "image_url": {"url": address}}]
    said = [
        {"role": "user", "content": parts},
        {"role": "tool", "content": f"![]({address})", "tool_call_id": "1"},
    ]
    assert len(str(check_messages(said))) < 500


def test_a_conversation_is_request_reply_and_trajectory() -> None:
    said = conversation(
        check_messages([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}])
    )
    assert said.request["danmaku"] == [{"user": "user", "text": "a"}]
    assert (said.reply, said.trajectory["reply"], said.trajectory["format"]) == ("b", "b", "trajectory/1")
