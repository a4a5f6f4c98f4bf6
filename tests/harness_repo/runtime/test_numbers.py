import time
from decimal import Decimal

import pytest

from harness_repo.runtime.numbers import claims_in, numbers_in, without_evidence


def test_numbers_are_values_and_not_texts() -> None:
    assert numbers_in("1,299元 89.00 ５ 12:30 1,2,3") == {
        Decimal(n) for n in ("1299", "89", "5", "12", "30", "1", "2", "3")
    }


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("拍2，199元带走", [2, 199]),
        ("买1，299元的那款", [1, 299]),
        ("拍２，１９９元", [2, 199]),
        ("2、199元", [2, 199]),
        ("1,299元", [1299]),
        ("1,2999", [1, 2999]),
        ("９\u200b９元", [99]),
        ("只要𝟿𝟿元", [99]),
    ],
)
def test_only_a_plain_comma_groups_digits(text: str, values: list[int]) -> None:
    assert [min(claim) for claim in claims_in(text)] == values


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("九十九元", 99), ("十元", 10), ("一元", 1), ("一百二十块", 120), ("一百二块", 120), ("只要一百二", 120),
        ("一百零二元", 102), ("两百", 200), ("兩百塊", 200), ("一千二百九十九元", 1299), ("一万两千元", 12000),
        ("三万五元", 35000), ("九千九百九十九万元", 99_990_000), ("九九元", 99), ("一九九元", 199), ("¥九十九", 99),
        ("十点五元", Decimal("10.5")), ("买两件", 2), ("七天无理由", 7), ("四件套", 4), ("二十四小时", 24),
        ("百分之九十", 90), ("壹佰元", 100),
    ],
)  # fmt: skip
def test_a_chinese_numeral_with_a_unit_is_a_claim(text: str, value: int | Decimal) -> None:
    assert [value in claim for claim in claims_in(text)] == [True]
    assert without_evidence(text, [f"有{value}"]) == []
    assert without_evidence(text, ["有123456"]) != []


@pytest.mark.parametrize(
    "text",
    ["看一下", "一个", "拍一件", "第一件", "第三天", "万一", "这两天", "三包政策", "十分好看", "千万别", "一块儿",
     "一起", "百分百", "四季", "十几天", "一点", "三心二意", "一年四季"],
)  # fmt: skip
def test_common_words_claim_nothing(text: str) -> None:
    assert claims_in(text) == []


@pytest.mark.parametrize(
    ("said", "evidence"),
    [
        ("打九折", "折扣 9 折"), ("打九折", "discount 0.9"), ("打九五折", "95折"),
        ("打9.5折", "九五折"), ("打95折", "9.5折"),
        ("半价", "5折"), ("半价", "第二件50%"), ("三五天到", "3-5天"), ("1.5万人买过", "sold: 15000"),
        ("卖了15000件", "1.5万"), ("九十九元", '{"price": "99.00"}'), ("99元", "九十九元"),
    ],
)  # fmt: skip
def test_the_same_number_is_written_in_many_ways(said: str, evidence: str) -> None:
    assert without_evidence(said, [evidence]) == []


@pytest.mark.parametrize(
    ("said", "evidence"), [("打八折", "9折"), ("半价", "8折"), ("三五天到", "7天"), ("1,299", "1299.5")]
)
def test_another_number_is_no_evidence(said: str, evidence: str) -> None:
    assert without_evidence(said, [evidence]) != []


@pytest.mark.parametrize(
    "text", ["9" * 200_000, "九" * 100_000, "1,111" * 40_000, "千百十" * 40_000, "万" * 100_000]
)
def test_a_long_text_is_read_at_once(text: str) -> None:
    began = time.process_time()
    without_evidence(text, [text])
    assert time.process_time() - began < 1.5
