"""What an evaluation may use, as it is set before it starts: calls, tokens, money and seconds.

Whether there is something left of it is `metering`'s to say.
"""

import math
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db.models import F, FloatField, Value
from django.db.models.functions import Cast, Coalesce, Extract, Greatest, Least
from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.loop.prices import price_of

CALLS, TOKENS, MONEY, SECONDS = PARTS = ("calls", "tokens", "money", "seconds")
# Seconds without a sign of life that count as a pause, and not as work.
LONGEST_BREATH = 30.0
MOST = 10**12


def check_budget(budget: Mapping[str, Any] | None, models: Iterable[str]) -> dict[str, Any]:
    """The budget as it is stored, parts without a limit left out; LoopError when it can't be kept.

    `models` are those that will be called: money can be limited only where all prices are known.
    """
    given = {part: value for part, value in (budget or {}).items() if value is not None}
    for part, value in given.items():
        if part not in PARTS:
            values = {"part": part, "parts": ", ".join(PARTS)}
            raise LoopError(_("a budget has no part %(part)s; there are %(parts)s") % values)
        _check_part(part, value)
    unknown = [model for model in models if model and price_of(model) is None] if MONEY in given else []
    if unknown:
        text = _(
            "money can't be limited while the price of %(models)s is unknown: set it in MODEL_PRICES, or limit tokens"
        )
        raise LoopError(text % {"models": ", ".join(dict.fromkeys(unknown))})
    # JSON knows no decimals.
    return {part: float(value) if isinstance(value, Decimal) else value for part, value in given.items()}


def _check_part(part: str, value: Any) -> None:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    if not is_number or not math.isfinite(value) or not 0 < float(value) <= MOST:
        values = {"part": part, "value": value}
        raise LoopError(
            _("a budget must be a number above 0, and %(part)s of this one is %(value)s") % values
        )
    if part in (CALLS, TOKENS) and int(value) != value:
        raise LoopError(_("a budget of %(part)s is a whole number") % {"part": part})


def life_signs(now: datetime) -> dict[str, Any]:
    """The fields that whoever works on an evaluation updates: its heartbeat, and how long it has been worked on."""
    since_last = Cast(Extract(Value(now) - F("heartbeat_at"), "epoch"), FloatField())
    worked = Greatest(Least(Coalesce(since_last, 0.0), LONGEST_BREATH), 0.0)
    return {"heartbeat_at": now, "running_seconds": F("running_seconds") + worked}
