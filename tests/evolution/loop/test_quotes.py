from evolution.loop.quotes import turn_of_quote
from evolution.prompts.diagnosis import CaseBrief

BRIEF = CaseBrief(
    id="1",
    request={"danmaku": [{"user": "a", "text": "3号多少钱"}]},
    symptom="the price is wrong",
    trajectory={
        "messages": [
            {"role": "system", "content": "You sell."},
            {"role": "user", "content": "- a: 3号多少钱"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "price"}}],
            },
            {"role": "tool", "tool_call_id": "c", "content": '{"price": 89}'},
            {"role": "assistant", "content": "现在 98元"},
            {"role": "assistant", "content": "真的 98元"},
        ]
    },
)


def test_a_quote_is_put_at_the_turn_where_it_stands() -> None:
    assert turn_of_quote(BRIEF, "真的 98元", 1) == 3
    assert turn_of_quote(BRIEF, '"price": 89', 9) == 1
    assert turn_of_quote(BRIEF, "3号多少钱", 2) == 0


def test_a_claimed_turn_that_holds_the_quote_stays() -> None:
    assert turn_of_quote(BRIEF, "98元", 3) == 3


def test_a_quote_of_what_was_said_about_the_case_keeps_a_turn_that_exists() -> None:
    assert turn_of_quote(BRIEF, "the price is wrong", 2) == 2
    assert turn_of_quote(BRIEF, "the price is wrong", 7) == 0
