from decimal import Decimal

import pytest
from pytest_django import Settings

from evolution.loop.prices import cost_of, read_prices

PRICES = {
    "gpt-4o": {"input": 2.5, "output": 10, "cached_input": 1.25},
    "local": {"input": 0.1, "output": 0.4},
}


def test_a_call_costs_its_tokens_by_the_million(settings: Settings) -> None:
    settings.MODEL_PRICES = PRICES
    # OpenAI's own example of its pricing page: a thousand each way is a quarter of a cent and a cent.
    assert cost_of("gpt-4o", 1000, 1000) == Decimal("0.0125")


def test_cached_tokens_have_their_own_price_and_are_part_of_the_prompt(settings: Settings) -> None:
    settings.MODEL_PRICES = PRICES
    assert cost_of("gpt-4o", 1000, 0, 400) == Decimal("0.002")


def test_without_a_price_of_their_own_cached_tokens_cost_what_others_do(settings: Settings) -> None:
    settings.MODEL_PRICES = PRICES
    assert cost_of("local", 1000, 0, 400) == Decimal("0.0001")


def test_an_unknown_price_is_none_and_not_zero(settings: Settings) -> None:
    settings.MODEL_PRICES = PRICES
    assert cost_of("gpt-5", 1000, 1000) is None


def test_a_call_whose_tokens_nobody_counted_has_no_known_cost(settings: Settings) -> None:
    settings.MODEL_PRICES = PRICES
    assert cost_of("gpt-4o", 0, 0) is None


def test_the_rehearsal_model_is_free() -> None:
    assert cost_of("rehearsal-judge", 1000, 1000) == 0


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"input": 1}, "output: Field required"),
        ({"input": 1, "output": -1}, "output: Input should be greater than or equal to 0"),
        ({"input": 1, "output": 1, "prompt": 2}, "prompt: Extra inputs"),
        ({"input": "NaN", "output": 1}, "input: Input should be a finite number"),
        (5, "it: "),
    ],
)
def test_a_price_that_cannot_be_used_is_named(entry: object, said: str) -> None:
    with pytest.raises(ValueError, match=f"^m: {said}"):
        read_prices({"m": entry})
