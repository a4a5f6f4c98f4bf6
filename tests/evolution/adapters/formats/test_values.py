import json
import math

import pytest

from evolution.adapters.formats.values import Parser, RecordProblem, clean, number, with_nan


def parse(text: str) -> object:
    return Parser().parse(text).value


@pytest.mark.parametrize(
    "text", ["9007199254740993", "18446744073709551617", "-123456789012345678901234567890", "1" + "0" * 400]
)
def test_integers_keep_every_digit(text: str) -> None:
    assert json.dumps(parse(text)) == text


@pytest.mark.parametrize(
    "text",
    ["0.1", "89.9", "1.0", "0.30000000000000004", "1e3", "1.5E-7", "123456789012.25", "1e308", "5e-324"],
)
def test_decimals_that_a_double_holds_are_numbers(text: str) -> None:
    assert parse(text) == float(text)


# 0.1 as C's printf writes it with 17 and 20 places.
@pytest.mark.parametrize("text", ["0.10000000000000001", "0.10000000000000000555"])
def test_a_double_with_all_its_digits_is_a_number(text: str) -> None:
    assert parse(text) == 0.1


@pytest.mark.parametrize(
    "text", ["0.1234567890123456789", "12345678901234567.5", "1e-400", "3.14159265358979323846264"]
)
def test_decimals_that_a_double_would_round_stay_text(text: str) -> None:
    assert parse(f'{{"n": {text}}}') == {"n": text}
    assert number(text) == float(text)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999", "9" * 5000])
def test_what_is_no_number_costs_the_record_around_it(text: str) -> None:
    parsed = Parser().parse(f'[{{"n": {text}}}, {{"n": 1}}]')
    assert not parsed.is_clean
    assert clean(parsed.value[1]) == {"n": 1}
    with pytest.raises(RecordProblem):
        clean(parsed.value[0])


def test_nan_can_be_read_as_nan() -> None:
    value = with_nan(parse('{"a": [NaN, -Infinity, 1e999], "b": "NaN"}'))
    assert isinstance(value, dict)
    assert math.isnan(value["a"][0])
    assert value["a"][1:] == [-math.inf, math.inf]
    assert value["b"] == "NaN"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r'"a\u0000b"', "a\\u0000b"),
        (r'"\ud800"', "\\ud800"),
        (r'"\uDFFF\ud83d\ude00"', "\\udfff😀"),
        ('"a\0b"', "a\\u0000b"),
    ],
)
def test_what_postgresql_cannot_store_becomes_visible(text: str, shown: str) -> None:
    assert parse(text) == shown
    assert parse(f"{{{text}: [{text}]}}") == {shown: [shown]}


def test_of_a_key_that_stands_twice_the_last_value_counts() -> None:
    assert parse('{"a": 1, "a": 2}') == {"a": 2}


@pytest.mark.parametrize(("levels", "fits"), [(100, True), (103, False)])
def test_depth_is_bounded(*, levels: int, fits: bool) -> None:
    assert Parser().parse("[" * levels + "]" * levels).is_clean is fits


def test_many_values_are_not_deep() -> None:
    assert Parser().parse(json.dumps([[1]] * 1000)).is_clean
