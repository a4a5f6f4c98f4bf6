from typing import Any

import pytest

from evolution.loop.dataset_cases import has_question, propose_request
from evolution.models import FailureCase

TALK = {
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "hi"},
        {"role": "user", "content": "3号多少钱"},
        {"role": "user", "content": "有券吗"},
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "89"},
        {"role": "assistant", "content": "100元"},
        {"role": "user", "content": "thanks"},
    ]
}
FIRST = {"danmaku": [{"user": "user", "text": "hello"}], "history": []}


def test_it_is_the_users_words_before_the_turn_that_went_wrong() -> None:
    case = FailureCase(request=FIRST, trajectory=TALK)

    assert propose_request(case, 3) == {
        "danmaku": [{"user": "user", "text": "3号多少钱"}, {"user": "user", "text": "有券吗"}],
        "history": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}],
    }


@pytest.mark.parametrize("turn", [None, 1])
def test_without_talk_before_it_the_request_stays(turn: int | None) -> None:
    assert propose_request(FailureCase(request=FIRST, trajectory=TALK), turn) == FIRST


@pytest.mark.parametrize(
    ("request_data", "answerable"),
    [
        (FIRST, True),
        ({"user": {"goal": "book a flight"}}, True),
        ({"danmaku": [{"user": "a", "text": " "}]}, False),
        ({"danmaku": 5}, False),
        ({"user": "x", "danmaku": ["hi"]}, True),
        ({}, False),
    ],
)
def test_a_request_needs_a_question(request_data: dict[str, Any], answerable: object) -> None:
    assert has_question(request_data) is answerable
