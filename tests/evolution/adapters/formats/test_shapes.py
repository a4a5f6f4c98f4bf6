from datetime import UTC, datetime
from typing import Any

import pytest

from evolution.adapters.formats.shapes import as_dict, as_list, as_text, parse_json, read_time, unpack_json

MOMENT = datetime(2025, 6, 1, 10, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        "2025-06-01T10:00:00Z", "2025-06-01T18:00:00+08:00", "2025-06-01 10:00:00", 1748772000, "1748772000",
        1748772000000, 1748772000000000, 1748772000000000000, "1748772000000000000",
    ],
)  # fmt: skip
def test_moments_are_read_in_all_their_notations(value: Any) -> None:
    assert read_time(value) == MOMENT


@pytest.mark.parametrize("value", [None, "", "soon", -3, 0, True, float("nan"), [], 10**400, "9" * 400])
def test_what_is_no_moment_is_none(value: Any) -> None:
    assert read_time(value) is None


def test_json_in_a_text_is_unpacked_as_often_as_it_was_packed() -> None:
    assert unpack_json('"[{\\"a\\": \\"{}\\"}]"') == [{"a": "{}"}]


@pytest.mark.parametrize("value", ["3", '"hi"', "true", "[1,", "hello", "{not json}", "", None, 3])
def test_what_people_wrote_is_not_unpacked(value: Any) -> None:
    assert unpack_json(value) == value


def test_numbers_in_a_text_keep_their_digits() -> None:
    assert parse_json("12345678901234567890123") == 12345678901234567890123


@pytest.mark.parametrize("value", ["[" * 5000, '{"a": NaN}', "[1e999]"])
def test_a_text_that_is_no_good_json_stays_one(value: str) -> None:
    assert parse_json(value) == value


def test_values_of_other_shapes_are_nothing() -> None:
    assert (as_dict([]), as_list({}), as_text({}), as_text(True), as_text(3)) == ({}, [], "", "", "3")
