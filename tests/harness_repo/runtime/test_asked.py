from typing import Any

import pytest

from harness_repo.runtime.asked import find_asked

CALL = {"id": "c1", "type": "function", "function": {"name": "get_stock", "arguments": '{"link_id": 3}'}}
RUN: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "3号还有吗"},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"stock": 0}'},
        {"role": "assistant", "content": "没有了"},
        {"role": "user", "content": "那4号呢"},
        {"role": "assistant", "content": "有"},
    ]
}


@pytest.mark.parametrize(("turn", "count"), [(1, 2), (2, 4), (3, 6), (9, 7)])
def test_it_is_what_stands_before_the_turn(turn: int, count: int) -> None:
    sent = find_asked(RUN, {}, turn)

    assert [message["role"] for message in sent] == [m["role"] for m in RUN["messages"][:count]]


def test_calls_are_sent_as_they_were_made() -> None:
    sent = find_asked(RUN, {}, 2)

    assert sent[2]["tool_calls"] == [CALL]
    assert sent[3] == {"role": "tool", "tool_call_id": "c1", "content": '{"stock": 0}'}


def test_every_call_is_answered_under_an_id_of_its_own() -> None:
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call, call, 3, {"function": {}}]},
        {"role": "assistant", "content": "y"},
    ]
    sent = find_asked({"messages": messages}, {}, 2)

    made = [call["id"] for call in sent[1]["tool_calls"]]
    assert len(set(made)) == 2
    assert [message["tool_call_id"] for message in sent[2:]] == made


def test_a_line_of_a_conversation_begins_with_its_own_instructions() -> None:
    run = [{"role": "system", "content": "s"}, {"role": "user", "content": "1"}]
    messages = [*run, {"role": "assistant", "content": "a"}, *run, {"role": "assistant", "content": "b"}]

    sent = find_asked({"messages": messages, "conversation": [{"user": "1"}, {"user": "1"}]}, {}, 2)

    assert sent == run


def test_without_messages_it_is_the_request() -> None:
    request = {
        "danmaku": [{"user": "a", "text": "多少钱"}],
        "history": [{"role": "assistant", "content": "欢迎"}],
    }
    assert find_asked({}, request, 1) == [
        {"role": "assistant", "content": "欢迎"},
        {"role": "user", "content": "多少钱"},
    ]


@pytest.mark.parametrize("odd", [None, [], 5, "x", {"messages": 3}, {"messages": [None, {"role": []}, {}]}])
def test_any_shape_is_survived(odd: object) -> None:
    assert find_asked(odd, {"danmaku": odd}, 1) == []
