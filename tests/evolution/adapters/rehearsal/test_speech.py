"""How fields and clauses are said: as people write them, in both languages."""

import pytest

from evolution.adapters.rehearsal.reading import Label
from evolution.adapters.rehearsal.speech import close_sentence, join_clauses, say_field, shorten


@pytest.mark.parametrize(
    ("label", "value", "zh", "en"),
    [
        (
            Label("券后价", "price after coupon", "元", "yuan"),
            89,
            "券后价89元",
            "the price after coupon is 89 yuan",
        ),
        (Label("快递", "carrier"), "京东快递 (JD Express)", "京东快递", "the carrier is JD Express"),
        (Label("快递", "carrier"), "顺丰 (SF)", "快递是顺丰", "the carrier is SF"),
        (
            Label("发货时效", "ships within"),
            "48小时内 (within 48 hours)",
            "发货时效48小时内",
            "it ships within 48 hours",
        ),
        (Label("运费", "shipping fee"), "运费8元 (8 yuan)", "运费8元", "the shipping fee is 8 yuan"),
        (Label("已售罄款式", "sold out"), "无 (none)", "没有已售罄款式", "sold out: none"),
        (Label("颜色", "colours"), "白、灰 (white, grey)", "颜色是白、灰", "the colours are white, grey"),
        (
            Label("有效期", "valid until"),
            "今晚24点 (midnight)",
            "有效期是今晚24点",
            "it is valid until midnight",
        ),
    ],
)
def test_a_field_is_said_with_its_label(label: Label, value: object, zh: str, en: str) -> None:
    assert say_field(label, value, chinese=True) == zh
    assert say_field(label, value, chinese=False) == en


def test_a_clause_after_a_full_stop_begins_a_sentence() -> None:
    assert join_clauses(["我给大家讲讲。", "绝对安全"], chinese=True) == "我给大家讲讲。绝对安全"
    assert join_clauses(["Welcome!", "it is safe"], chinese=False) == "Welcome! It is safe"


@pytest.mark.parametrize(
    ("text", "closed"),
    [("券后价89元", "券后价89元哈。"), ("我是真人主播哦", "我是真人主播哦。"), ("好的。", "好的。")],
)
def test_a_sentence_has_one_particle_and_one_full_stop(text: str, closed: str) -> None:
    assert close_sentence(text, chinese=True) == closed


def test_an_english_sentence_ends_with_a_full_stop() -> None:
    assert close_sentence("It is safe", chinese=False) == "It is safe."


def test_what_is_too_long_loses_its_last_clauses() -> None:
    assert shorten("券后价89元，满减40元，今晚截止哈。", 12) == "券后价89元。"
