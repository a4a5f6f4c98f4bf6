import pytest

from evolution.loop.quotes import quotes_verbatim, turn_of_quote, verify_evidence
from evolution.prompts.diagnosis import LONGEST_QUOTE, CaseBrief, Evidence

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


def test_an_answer_before_the_last_calls_is_quoted_from_its_own_turn() -> None:
    told = {"role": "assistant", "content": "It is 98 yuan in all."}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "close"}}]}
    brief = CaseBrief(id="1", trajectory={"messages": [told, call]}, reply=str(told["content"]))
    assert turn_of_quote(brief, "98 yuan in all", 2) == 1


def test_a_quote_of_what_was_said_about_the_case_is_of_no_turn() -> None:
    assert turn_of_quote(BRIEF, "the price is wrong", 2) == 0


@pytest.mark.parametrize(
    "quote",
    [
        "a",
        "3",
        "元",
        '"',
        '"role":',
        "assistant",
        '"danmaku"',
        '"request": {',
        '"arguments"',
        "{",
        "messages",
        "98",
    ],
)
def test_a_letter_or_a_name_of_the_format_is_no_quote(quote: str) -> None:
    assert not quotes_verbatim(BRIEF, quote)


@pytest.mark.parametrize(
    "quote", ["3号多少钱", "现在 98元", '{"price": 89}', "the price is wrong", "price is wrong"]
)
def test_words_and_whole_sayings_are_quotes(quote: str) -> None:
    assert quotes_verbatim(BRIEF, quote)


@pytest.mark.parametrize("quote", ["现在 98元 真的 98元", "真的 98元 the price is wrong", "- a: 3号多少钱 {"])
def test_a_quote_stands_in_one_piece(quote: str) -> None:
    assert not quotes_verbatim(BRIEF, quote)


def test_what_a_tool_was_given_and_gave_is_quoted_as_it_is_shown() -> None:
    call = {
        "turn": 2,
        "name": "look_up",
        "arguments": {"id": 3},
        "result": {"price": 89, "stock": "three left"},
    }
    brief = CaseBrief(id="1", trajectory={"tool_calls": [call]})
    assert quotes_verbatim(brief, '"price": 89, "stock": "three left"')
    assert turn_of_quote(brief, '"name": "look_up", "arguments": {"id": 3}', 1) == 2
    assert turn_of_quote(brief, "three left", 1) == 2


def test_a_long_quote_is_kept_to_its_limit() -> None:
    text = "long words " * 100
    brief = CaseBrief(id="1", reply=text)
    kept = verify_evidence([Evidence(case="1", turn=1, quote=text)], {"1": brief}, {"1": brief})
    assert [(len(item["quote"]), item["turn"]) for item in kept] == [(LONGEST_QUOTE, 1)]


def test_a_turn_may_be_any_number() -> None:
    brief = CaseBrief(id="1", trajectory={"tool_calls": [{"turn": 10**12, "result": "out of stock"}]})
    assert quotes_verbatim(brief, "out of stock")
