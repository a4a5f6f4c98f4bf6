import random

import pytest

from evolution.loop.search_text import (
    MOST_PIECE,
    MOST_TEXT,
    fold,
    grams,
    pieces_of,
    query_pieces,
    salt,
    search_text,
    store_texts,
)
from evolution.models import CaseText, FailureCase
from tests.evolution.intake import make_failure
from tests.evolution.measured import make_harness

MIXED = fold("订单号 W-1023，券后价89元！ Refund of order #W1023 failed: E40217 (timeout) 3号链接多少钱？ ok")


@pytest.mark.parametrize(
    ("written", "folded"),
    [
        ("Ｒｅｆｕｎｄ　ＯＫ", "refund ok"),
        ("  a\n\tb  ", "a b"),
        ("券\u200b后价", "券后价"),
        ("bad\ud800half", "bad half"),
        ("nul\x00byte", "nul byte"),
        ("STRASSE ①", "strasse 1"),
    ],
)
def test_texts_are_compared_in_one_width_and_case(written: str, folded: str) -> None:
    assert fold(written) == folded


def test_every_part_of_a_text_has_pieces_that_the_text_has() -> None:
    rolls = random.Random(7)  # noqa: S311  nothing is to be kept secret
    whole = set(grams(MIXED, 3).tolist())
    for _ in range(500):
        start = rolls.randrange(len(MIXED))
        part = MIXED[start : start + rolls.randrange(1, 12)].strip()
        assert set(salt(query_pieces(part), 3).tolist()) <= whole, part


@pytest.mark.parametrize(
    ("part", "has_pieces"),
    [("券", True), ("券后", True), ("9元", True), ("e40", True), ("ok", False), ("#w", False), ("", False)],
)
def test_what_is_long_enough_can_be_asked_of_the_index(part: str, *, has_pieces: bool) -> None:
    assert (len(query_pieces(part)) > 0) is has_pieces


def test_pieces_do_not_reach_over_a_space() -> None:
    assert set(pieces_of("abcd").tolist()).isdisjoint(pieces_of("ab cd").tolist())


def test_a_piece_is_entered_differently_in_each_block() -> None:
    assert set(grams("券后价", 0).tolist()).isdisjoint(grams("券后价", 1).tolist())


def make_case() -> FailureCase:
    trajectory = {
        "messages": [
            {"role": "system", "content": "你是主播"},
            {"role": "user", "content": "我的订单呢"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {"function": {"name": "get_order", "arguments": '{"name": "\\u5f20\\u4e09"}'}},
                    "odd",
                ],
            },
            {"role": "tool", "content": {"error": "E40217"}},
            {"role": "assistant", "content": [{"type": "text", "text": "Sorry, 查不到"}]},
            "odd",
        ]
    }
    return FailureCase(source_id="Trace-9", request={}, symptom="答错了", reply="再见", trajectory=trajectory)


@pytest.mark.parametrize(
    "term", ["trace-9", "答错", "再见", "我的订单", "get_order", "张三", "e40217", "sorry, 查不到"]
)
def test_what_was_said_called_and_returned_is_searched(term: str) -> None:
    assert term in search_text(make_case())


def test_system_prompts_are_not_searched() -> None:
    assert "主播" not in search_text(make_case())


def test_a_long_case_is_searched_up_to_the_limits() -> None:
    messages = [{"role": "tool", "content": f"{n} " + "x" * 2 * MOST_PIECE} for n in range(10)]

    text = search_text(FailureCase(source_id="1", request={}, trajectory={"messages": messages}))

    assert len(text) <= MOST_TEXT
    assert all(len(line) <= MOST_PIECE for line in text.split("\n"))


@pytest.mark.parametrize("odd", [None, 5, "x", [1], {"danmaku": 5}, {"messages": 1}, {"messages": [None]}])
def test_a_case_of_whatever_shape_has_a_text(odd: object) -> None:
    assert search_text(FailureCase(source_id="1", request=odd, trajectory=odd)).startswith("1")


@pytest.mark.django_db
def test_a_changed_text_waits_for_the_index_again() -> None:
    case = make_failure(make_harness(), "券后价")
    CaseText.objects.update(grams=[1])
    store_texts([case])
    unchanged = CaseText.objects.get().grams

    case.reply = "new"
    store_texts([case])

    assert (unchanged, CaseText.objects.get().grams) == ([1], None)
