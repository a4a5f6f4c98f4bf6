import pytest

from evolution.loop.flags import FlagKind
from tests.evolution.loop.flags.changing import BASE, CONSTRAINTS, flag_line

CASE = "观众：小熊保温杯多少钱？\n主播：小熊保温杯券后价 59 元，订单 QX20931 明天发货，现在下单还送杯刷一支。"
ENGLISH = (
    "The passenger in seat 14C wanted to change the reservation ZFA04Y to the 2024-05-20 flight for $312."
)


def test_a_passage_of_a_transcript_is_shown_as_it_was_copied() -> None:
    found = flag_line("- 回答：小熊保温杯券后价59元、订单QX20931明天发货，现在下单还送杯刷一支", [CASE])
    assert found == [
        (FlagKind.CASE_FACT, "59元, QX20931"),
        (FlagKind.FROM_TRANSCRIPT, "小熊保温杯券后价59元、订单QX20931明天发货，现在下单还送杯刷一支"),
    ]


def test_small_differences_do_not_hide_a_copy() -> None:
    kinds = [
        kind
        for kind, _ in flag_line("- 小熊保温杯的券后价 59 元，订单明天发货，现在下单还送杯刷一支", [CASE])
    ]
    assert FlagKind.FROM_TRANSCRIPT in kinds


@pytest.mark.parametrize("fact", ["$312", "ZFA04Y", "2024-05-20"])
def test_facts_of_one_case_are_flagged(fact: str) -> None:
    assert flag_line(f"- say {fact} then", [ENGLISH, "another", "case"]) == [(FlagKind.CASE_FACT, fact)]


def test_what_most_cases_say_is_no_fact_of_one() -> None:
    assert flag_line("- the fee is $50", ["a fee of $50"] * 3) == []


@pytest.mark.parametrize(
    "text", ["- 价格先查工具再说", "- tell the price after the coupon", "- 3号链接要查库存"]
)
def test_short_common_words_are_no_copy(text: str) -> None:
    assert flag_line(text, [CASE, ENGLISH, "3号链接多少钱", "tell me the price please"]) == []


def test_what_the_base_says_stands_in_every_transcript() -> None:
    rule = "- 只说工具查到的内容，工具没有返回的信息不要编造。"
    assert rule in BASE[CONSTRAINTS].decode()
    assert flag_line(f"{rule[:-1]}！", [f"system: {rule}"]) == []
