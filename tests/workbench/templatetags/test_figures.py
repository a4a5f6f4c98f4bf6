from decimal import Decimal

import pytest
from pytest_django import Settings

from workbench.templatetags.workbench import (
    coverage,
    duration,
    milliseconds,
    milliseconds_more,
    money,
    thousands,
)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.0421, "42 ms"),
        (8.14, "8.1 s"),
        (59, "59 s"),
        (80, "1 min 20 s"),
        (4800, "1 h 20 min"),
        (None, "–"),
        ("", "–"),
    ],
)
def test_times_are_shown_in_their_largest_units(seconds: object, shown: str) -> None:
    assert duration(seconds) == shown


def test_milliseconds_are_shown_as_times() -> None:
    assert (milliseconds(8100.0), milliseconds(None)) == ("8.1 s", "–")


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (Decimal(0), "0.00 USD"),
        (0.00123, "0.00123 USD"),
        (0.5, "0.500 USD"),
        (12.3456, "12.35 USD"),
        (None, "–"),
    ],
)
def test_amounts_have_the_digits_that_say_something(amount: object, shown: str) -> None:
    assert money(amount) == shown


def test_an_amount_keeps_the_currency_that_it_was_counted_in(settings: Settings) -> None:
    settings.MODEL_CURRENCY = "CNY"
    assert (money(2, "USD"), money(2), money(Decimal(-2), "EUR")) == ("2.00 USD", "2.00 CNY", "−2.00 EUR")


def test_a_difference_of_times_has_its_sign() -> None:
    assert [milliseconds_more(value) for value in (80, -80, 0, None)] == ["+80 ms", "−80 ms", "0 ms", "–"]


def test_a_share_is_never_rounded_up_to_all() -> None:
    assert (coverage(99.98), coverage(100)) == ("99", "100")


def test_long_counts_can_be_read() -> None:
    assert thousands(1234567) == "1\u202f234\u202f567"
