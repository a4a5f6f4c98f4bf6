"""What a model call costs, by the prices that the operator has set; a price that nobody set is unknown, not zero."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

PER = 1_000_000
# The rehearsal model's names begin so.
FREE_PREFIX = "rehearsal-"


@dataclass(frozen=True)
class Price:
    """Of a million tokens each, in MODEL_CURRENCY."""

    input: Decimal
    output: Decimal
    # of prompt tokens that the provider read from a cache of its own
    cached_input: Decimal


FREE = Price(Decimal(0), Decimal(0), Decimal(0))


class _Entry(BaseModel):
    """One entry of MODEL_PRICES."""

    model_config = ConfigDict(extra="forbid")

    input: Decimal = Field(ge=0, lt=10**6, allow_inf_nan=False)
    output: Decimal = Field(ge=0, lt=10**6, allow_inf_nan=False)
    cached_input: Decimal | None = Field(None, ge=0, lt=10**6, allow_inf_nan=False)


# The setting as it was read last, and what it says.
_last: tuple[Any, dict[str, Price]] = (None, {})


def read_prices(entries: Mapping[str, Any]) -> dict[str, Price]:
    """Model -> price of a decoded MODEL_PRICES; ValueError names the model and the field that is wrong."""
    prices = {}
    for model, data in entries.items():
        try:
            entry = _Entry.model_validate(_as_written(data))
        except ValidationError as failure:
            first = failure.errors(include_url=False, include_input=False)[0]
            field = ".".join(map(str, first["loc"])) or "it"
            raise ValueError(f"{model}: {field}: {first['msg']}") from None
        cached = entry.input if entry.cached_input is None else entry.cached_input
        prices[model] = Price(entry.input, entry.output, cached)
    return prices


def _as_written(data: Any) -> Any:
    """With the decimal digits that were written: 0.1 is a tenth, and not the float next to it."""
    if not isinstance(data, dict):
        return data
    return {name: str(value) if isinstance(value, float) else value for name, value in data.items()}


def price_of(model: str) -> Price | None:
    """The price that is set for a model by the name that figures are recorded under; None when none is."""
    global _last  # noqa: PLW0603  read once per setting, as calls ask for it
    if model.startswith(FREE_PREFIX):
        return FREE
    if _last[0] is not settings.MODEL_PRICES:
        _last = (settings.MODEL_PRICES, read_prices(settings.MODEL_PRICES))
    return _last[1].get(model)


def cost_of(model: str, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0) -> Decimal | None:
    """What one call costs in MODEL_CURRENCY; None when the model's price is unknown, or when no token was counted.

    `cached_tokens` are part of `prompt_tokens`. Every call has tokens: a server that states none doesn't count them.
    """
    price = price_of(model)
    if price is FREE:
        return Decimal(0)
    if price is None or prompt_tokens + completion_tokens <= 0:
        return None
    cached = min(cached_tokens, prompt_tokens)
    fresh = prompt_tokens - cached
    return (fresh * price.input + cached * price.cached_input + completion_tokens * price.output) / PER
