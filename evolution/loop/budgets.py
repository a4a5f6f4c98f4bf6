"""What an evaluation may use: calls, tokens, money and seconds; each ends it cleanly when it is used up.

Calls are a hard limit over all processes. Tokens, money and seconds are known only afterwards: when what is spent and
what calls under way will cost on average reach the limit, no further call is made.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import F, FloatField, Sum, Value
from django.db.models.functions import Cast, Coalesce, Extract, Greatest, Least
from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.limits.shares import taken_by_all
from evolution.loop.patience import patiently
from evolution.loop.prices import price_of
from evolution.models import Evaluation
from harness_repo.runtime.chat import ChatError

CALLS, TOKENS, MONEY, SECONDS = PARTS = ("calls", "tokens", "money", "seconds")
# The most calls that a process takes out of a budget in advance; less when little is left.
MOST_PERMITS = 16
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
    if not is_number or not math.isfinite(value) or not 0 < value <= MOST:
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


@dataclass(frozen=True)
class Used:
    """What an evaluation has used, or a part of that."""

    calls: int = 0
    tokens: int = 0
    money: Decimal = Decimal(0)
    # calls whose price is unknown
    unpriced: int = 0

    def __add__(self, other: "Used") -> "Used":
        return Used(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.money + other.money,
            self.unpriced + other.unpriced,
        )


NOTHING = Used()


@dataclass(frozen=True)
class _Account:
    """What the database knew of all processes' use at a time."""

    used: Used = NOTHING
    # calls under way in all processes, as far as they are reported
    under_way: int = 0
    running_seconds: float = 0.0
    # by the clock of this process
    at: float = 0.0


class Meter:
    """Says whether an evaluation may make one more call; one per process at work on it."""

    def __init__(self, evaluation: Evaluation) -> None:
        self._pk = evaluation.pk
        self._budget: Mapping[str, Any] = evaluation.budget
        self._account: _Account | None = None
        # Used here: not yet handed over to be stored, and not yet known to be stored.
        self._pending = NOTHING
        self._handed = NOTHING
        self._permits = 0
        self._asking = asyncio.Lock()
        self._waiting = 0
        self._stopped_by = ""

    @property
    def stopped_by(self) -> str:
        """The part of the budget that is used up, "" while none is."""
        if not self._stopped_by and self._is_out_of_time():
            self._stopped_by = SECONDS
        return self._stopped_by

    @property
    def is_limited(self) -> bool:
        """Whether there is a budget at all."""
        return bool(self._budget)

    async def admit(self, under_way: Callable[[], int]) -> None:
        """Return when one more call may be made beside those under way here; else ChatError of the kind "budget"."""
        if not self._budget:
            return
        if self._account is None:
            async with self._asking:
                if self._account is None:
                    await patiently(self.refresh)
        if CALLS in self._budget and not self._stopped_by:
            await self._take_permit()
        # From here to the call nobody else has a turn.
        self._look(under_way())
        if self.stopped_by:
            raise ChatError(f"the budget of {self.stopped_by} is used up", "budget")
        self._permits -= CALLS in self._budget

    def add(self, used: Used) -> None:
        """Count a call that has been answered."""
        self._pending += used

    def hand_over(self) -> Used:
        """What has been used since the last time, which is to be stored now."""
        self._handed, self._pending = self._pending, NOTHING
        return self._handed

    def refresh(self) -> None:
        """Look up what all processes have used; in the thread of the database, inside or outside a transaction."""
        if not self._budget:
            return
        row = Evaluation.objects.filter(pk=self._pk).values("running_seconds").get()
        used = _read_used(self._pk) if TOKENS in self._budget or MONEY in self._budget else NOTHING
        under_way = taken_by_all(f"evaluation:{self._pk}:calls") if used.calls else 0
        self._handed = NOTHING
        self._account = _Account(used, under_way, row["running_seconds"], time.monotonic())

    async def close(self) -> None:
        """Give permits that were not used back."""
        permits, self._permits = self._permits, 0
        if permits:
            await patiently(give_permits_back, self._pk, permits)

    def _is_out_of_time(self) -> bool:
        account = self._account
        if SECONDS not in self._budget or account is None:
            return False
        return account.running_seconds + time.monotonic() - account.at >= float(self._budget[SECONDS])

    def _look(self, under_way: int) -> None:
        """Stop for tokens or money as soon as what is under way will use up the rest."""
        account = self._account or _Account()
        used = account.used + self._handed + self._pending
        calls = max(used.calls, 1)
        more = max(under_way, account.under_way)
        if TOKENS in self._budget and used.tokens * (1 + more / calls) >= self._budget[TOKENS]:
            self._stopped_by = self._stopped_by or TOKENS
        if MONEY in self._budget:
            # What has no price can't be held to one.
            spent = float(used.money) * (1 + more / calls)
            if used.unpriced or spent >= float(self._budget[MONEY]):
                self._stopped_by = self._stopped_by or MONEY

    async def _take_permit(self) -> None:
        """Wait until there is a permit for us, or none is left to take."""
        self._waiting += 1
        try:
            while self._permits <= 0 and not self._stopped_by:
                async with self._asking:
                    if self._permits > 0:
                        continue
                    taken = await patiently(take_permits, self._pk, int(self._budget[CALLS]), self._waiting)
                    self._permits += taken
                if not taken:
                    self._stopped_by = CALLS
        finally:
            self._waiting -= 1


def take_permits(pk: int, budget: int, wanted: int) -> int:
    """Take calls out of the budget for good; returns how many, 0 when none is left."""
    with transaction.atomic():
        row = Evaluation.objects.select_for_update(no_key=True).filter(pk=pk)
        reserved = row.values_list("calls_reserved", flat=True).get()
        left = max(budget - reserved, 0)
        taken = min(left, max(wanted, min(MOST_PERMITS, left // MOST_PERMITS)))
        if taken:
            Evaluation.objects.filter(pk=pk).update(calls_reserved=reserved + taken)
    return taken


def give_permits_back(pk: int, permits: int) -> None:
    """Put calls that were never made back into the budget."""
    left = Greatest(F("calls_reserved") - permits, 0)
    Evaluation.objects.filter(pk=pk).update(calls_reserved=left)


def _read_used(pk: int) -> Used:
    row = Evaluation.objects.filter(pk=pk).aggregate(
        calls=Sum("usage__made"),
        prompt=Sum("usage__prompt_tokens"),
        completion=Sum("usage__completion_tokens"),
        money=Sum("usage__cost"),
        unpriced=Sum("usage__unpriced"),
    )
    tokens = (row["prompt"] or 0) + (row["completion"] or 0)
    return Used(row["calls"] or 0, tokens, row["money"] or Decimal(0), row["unpriced"] or 0)
