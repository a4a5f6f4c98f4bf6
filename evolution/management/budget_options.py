"""The options of commands that limit what an evaluation may use."""

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from django.conf import settings

from evolution.loop.budgets import MOST, PARTS


def add_budget_options(parser: ArgumentParser, what: str) -> None:
    """Declare --max-calls, --max-tokens, --max-money and --max-seconds; `what` says what they hold for."""
    limits = parser.add_argument_group("budget", what)
    limits.add_argument("--max-calls", type=positive, metavar="N")
    limits.add_argument("--max-tokens", type=positive, metavar="N")
    limits.add_argument("--max-money", type=amount, metavar="X", help=f"in {settings.MODEL_CURRENCY}")
    limits.add_argument("--max-seconds", type=positive, metavar="S")


def read_budget(options: Mapping[str, Any]) -> dict[str, Any]:
    """The limits that were given, by the part of the budget."""
    limits = {part: options[f"max_{part}"] for part in PARTS}
    return {part: limit for part, limit in limits.items() if limit is not None}


def positive(text: str) -> int:
    """A number of at least 1, for argparse."""
    if not (text.isascii() and text.isdecimal() and 0 < len(text) < 13 and int(text) > 0):
        raise ArgumentTypeError(f"{text[:40]!r} is not a whole number above 0")
    return int(text)


def amount(text: str) -> Decimal:
    """An amount of money above 0, for argparse."""
    try:
        value = Decimal(text)
    except InvalidOperation:
        value = Decimal(0)
    if not value.is_finite() or not 0 < float(value) <= MOST:
        raise ArgumentTypeError(f"{text[:40]!r} is not an amount above 0 that can be kept")
    return value
