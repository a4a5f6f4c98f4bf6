import json
from typing import Any

import pytest
from pytest_django import Settings

from evolution.loop.masking import SHIPPED, Masker, MaskingError, Rule
from evolution.ports import Check, Feedback, Record, Rejected
from tests.evolution.intake import make_record

MASKER = Masker(SHIPPED)
PHONE, OTHER = "13812345678", "13987654321"


def mask(value: Any) -> Any:
    return MASKER.mask_value(value)[0]


def test_a_value_has_its_number_by_first_appearance_and_keeps_it() -> None:
    assert mask([OTHER, f"{PHONE} {OTHER}", f"+86 {PHONE}"]) == [
        "[phone 1]",
        "[phone 2] [phone 1]",
        "[phone 2]",
    ]


def test_each_hit_is_counted_under_its_rule() -> None:
    assert MASKER.mask_value([PHONE, PHONE, "a@b.com"])[1] == {"phone": 2, "email": 1}


def test_keys_and_whole_numbers_are_masked_too() -> None:
    assert mask({PHONE: 1, "phone": int(PHONE), "n": [int(OTHER)]}) == {
        "[phone 1]": 1,
        "phone": "[phone 1]",
        "n": ["[phone 2]"],
    }


def test_two_ways_to_write_a_number_as_keys_lose_no_entry() -> None:
    assert list(mask({PHONE: "a", "138-1234-5678": "b"}).values()) == ["a", "b"]


def test_a_telling_key_gives_its_value_away() -> None:
    value = {"api_key": "abcd1234efgh5678", "order": {"id": "6920001234567890123"}, "password": "hunter2"}
    assert mask(value) == {
        "api_key": "[API key 1]",
        "order": {"id": "[order number 1]"},
        "password": "[password 1]",
    }


def test_what_a_name_gave_away_is_masked_where_it_has_none() -> None:
    value = [{"order_id": "6920001234567890123"}, "查一下6920001234567890123", "x6920001234567890123"]
    assert mask(value)[1:] == ["查一下[order number 1]", "x6920001234567890123"]


@pytest.mark.parametrize(
    "text",
    [
        '{"phone": 13812345678, "a": [13812345678, "x, 13812345678, y"]}',
        '{"note": "say \\"13812345678\\"\\n", "n": 1.50}',
    ],
)
def test_json_in_a_text_stays_json(text: str) -> None:
    masked = mask(text)
    assert PHONE not in masked
    assert json.loads(masked.replace("[phone 1]", PHONE)).keys() == json.loads(text).keys()


def test_what_has_nothing_to_hide_is_the_very_same() -> None:
    record = make_record("a")
    assert MASKER.mask_record(record) == (record, {})
    assert MASKER.mask_record(record)[0] is record


def test_every_field_with_texts_is_masked() -> None:
    record = Record(
        source="s",
        source_id="a",
        failed=True,
        line=1,
        request={"text": PHONE},
        context={"user": PHONE},
        trajectory={"messages": [{"role": "user", "content": PHONE}]},
        reply=PHONE,
        symptom=PHONE,
        scores={PHONE: 1},
        findings=[{"a": PHONE}],
        category=PHONE,
        errors=(PHONE,),
        checks=(Check(PHONE, passed=False, reason=PHONE),),
        feedback=(Feedback("viewer", PHONE, PHONE),),
        tags=(PHONE,),
    )
    masked, counts = MASKER.mask_record(record)
    assert PHONE not in repr(masked)
    assert counts == {"phone": 14}
    assert masked.checks == (Check("[phone 1]", passed=False, reason="[phone 1]"),)
    assert masked.feedback == (Feedback("viewer", "[phone 1]", "[phone 1]"),)


def test_ids_that_are_masked_stay_apart_and_are_the_same_again() -> None:
    ids = [MASKER.mask_record(make_record(text))[0].source_id for text in (PHONE, OTHER, PHONE)]
    assert ids[0] == ids[2] != ids[1]
    assert PHONE not in ids[0]


def test_source_and_version_are_masked_and_stay_apart() -> None:
    record = Record("SF " + PHONE, "a", True, 1, {"text": "q"}, harness_commit=OTHER)
    masked, counts = MASKER.mask_record(record)
    assert counts == {"phone": 2}
    assert PHONE not in masked.source
    assert masked.source.startswith("SF [phone ~")
    assert masked.harness_commit.startswith("[phone ~")


def test_what_stands_in_an_id_depends_on_the_key_of_the_installation(settings: Settings) -> None:
    before = MASKER.mask_record(make_record(PHONE))[0].source_id
    settings.SECRET_KEY = "another key"
    assert MASKER.mask_record(make_record(PHONE))[0].source_id != before


def test_parts_of_a_record_are_numbered_when_they_are_together() -> None:
    parts = [MASKER.mask_part({"a": text})[0] for text in (PHONE, OTHER, f"+86{PHONE}")]
    assert PHONE not in str(parts)
    together, counts = MASKER.mask_value(parts)
    assert together == [{"a": "[phone 1]"}, {"a": "[phone 2]"}, {"a": "[phone 1]"}]
    assert counts == {"phone": 3}


def test_two_finds_that_overlap_are_one_and_nothing_of_either_stays() -> None:
    masker = Masker([Rule("a", "first", "bcd"), Rule("b", "second", "cdefg")])
    assert masker.mask_text("abcdefgh") == "a[second 1]h"


def test_a_rule_that_takes_too_long_has_the_record_rejected_with_its_name_alone() -> None:
    masker = Masker([Rule("slow", "x", r"(?:a|a)+$")])
    record = make_record("id", "a" * 5000 + "!")
    rejected, counts = masker.mask_item(record)
    assert isinstance(rejected, Rejected)
    assert (rejected.line, counts) == (record.line, {})
    assert "slow" in rejected.reason
    assert "aaa" not in rejected.reason
    assert "aaa" not in masker.mask_text("a" * 5000 + "!")


def test_a_broken_pattern_is_said() -> None:
    with pytest.raises(MaskingError, match="broken"):
        Masker([Rule("bad", "x", "(")])


def test_reasons_of_rejections_quote_nothing() -> None:
    assert MASKER.mask_rejected(Rejected(3, f"bad: {PHONE}")) == Rejected(3, "bad: [phone 1]")


def test_a_masker_without_rules_changes_nothing() -> None:
    assert Masker([]).mask_value({"a": PHONE}) == ({"a": PHONE}, {})
