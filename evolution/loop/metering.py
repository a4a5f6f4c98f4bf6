"""Inside an evaluation with a budget: whether one more call may be made, whichever process makes it.

Calls are a hard limit. What a call takes of tokens and money is known only afterwards: until then it counts at what
such calls take on average, or by the length of its prompt. While calls under way may use up what is left, others wait
for them; what is used up ends it, with no more than the last call above the limit.
"""

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.db import transaction

from evolution.limits.holders import name_process
from evolution.loop.budget_use import (
    NOTHING,
    Account,
    Used,
    guess_use,
    read_account,
    read_history,
    remove_holds,
    write_holds,
)
from evolution.loop.budgets import CALLS, MONEY, SECONDS, TOKENS
from evolution.loop.patience import patiently
from evolution.models import Evaluation
from harness_repo.runtime.chat import ChatError, ChatRequest

# From the beginning of one question to that of the next: who asks meanwhile comes along.
SECONDS_BETWEEN = 0.005
# Who waits for calls of other processes looks again.
LOOK_AGAIN = 0.25


@dataclass(eq=False)
class _Wish:
    """A call that is to be made."""

    role: str
    guess: Callable[[], Used]
    answer: "asyncio.Future[Used]"


class Permit:
    """Lets one call be made, and says what came of it."""

    def __init__(self, meter: "Meter", role: str, model: str, request: ChatRequest) -> None:
        self._meter = meter
        self._role = role
        self._model = model
        self._request = request
        self._held: Used | None = None

    @property
    def is_held(self) -> bool:
        """Whether a call may be under way by it."""
        return self._held is not None

    async def take(self) -> None:
        """Return when the call may be made; ChatError of the kind "budget" when no further one may."""
        if self._meter.is_limited:
            self._held = await self._meter.admit(self._role, self._guess)

    def use(self, tokens: int = 0, cost: Decimal | None = Decimal(0)) -> None:
        """Say what the try took, once it has ended; nothing when none was made. `cost` is None when it is unknown."""
        if self._held is not None:
            used = Used(1, tokens, cost or Decimal(0), int(cost is None))
            self._meter.settle(self._role, self._held, used)
            self._held = None

    def lose(self) -> None:
        """Say that the call was cut off: what it took is never known, and counts at what was expected."""
        if self._held is not None:
            self._meter.lose(self._role, self._held)
            self._held = None

    def _guess(self) -> Used:
        return self._meter.history.get((self._role, self._model)) or guess_use(self._model, self._request)


class Meter:
    """Says whether an evaluation may make one more call; one per process at work on it.

    Used from one event loop and from the thread of the database.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        self._evaluation = evaluation
        self._budget: Mapping[str, Any] = evaluation.budget
        self._account: Account | None = None
        self._lock = threading.Lock()
        # By role: what calls under way are expected to take, and what calls took that have ended: not handed over to
        # be stored yet, and handed over.
        self._under_way: dict[str, Used] = {}
        self._pending: dict[str, Used] = {}
        self._handed: dict[str, Used] = {}
        self._lost: dict[str, Used] = {}
        self._has_held = False
        self._line: list[_Wish] = []
        self._asking: asyncio.Task[None] | None = None
        self._asked_at = -math.inf
        self._ended = asyncio.Event()
        self._stopped_by = ""
        self._is_gone = False

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

    def permit(self, role: str, model: str, request: ChatRequest) -> Permit:
        """What a call to a role's model needs."""
        return Permit(self, role, model, request)

    @cached_property
    def holder(self) -> str:
        """Whose calls these are, among all processes."""
        return name_process()

    @cached_property
    def history(self) -> Mapping[tuple[str, str], Used]:
        """(role, model) -> what a call took before; to be asked in the thread of the database."""
        return read_history(self._evaluation) if self._counts_use else {}

    async def admit(self, role: str, guess: Callable[[], Used]) -> Used:
        """What one more call is expected to take, once it may be made; else ChatError of the kind "budget".

        To be settled when it has ended. `guess` says in the thread of the database what it takes where no such call
        has been made.
        """
        self._refuse_if_stopped()
        if not self._is_counted:
            if self._account is None:
                await patiently(self.refresh)
            self._refuse_if_stopped()
            return NOTHING
        wish = _Wish(role, guess, asyncio.get_running_loop().create_future())
        self._line.append(wish)
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask_for_all())
        self._ended.set()
        try:
            return await wish.answer
        except asyncio.CancelledError:
            if wish.answer.done() and not wish.answer.cancelled() and wish.answer.exception() is None:
                self.settle(role, wish.answer.result(), NOTHING)
            raise

    def settle(self, role: str, expected: Used, used: Used) -> None:
        """Count what a call took that was admitted."""
        with self._lock:
            _add(self._pending, role, used)
            _add(self._under_way, role, NOTHING - expected)
        self._ended.set()

    def lose(self, role: str, expected: Used) -> None:
        """Count a call that was admitted and cut off; nothing of it is ever stored, so it stays held."""
        with self._lock:
            _add(self._lost, role, expected)
            _add(self._under_way, role, NOTHING - expected)
        self._ended.set()

    def hand_over(self) -> None:
        """What has been used since the last time is being stored now; what was handed over before has been."""
        with self._lock:
            self._handed, self._pending = self._pending, {}

    def refresh(self) -> None:
        """Look up what all have used, and write down what is under way here, as what was handed over is stored now.

        In the thread of the database, inside or outside a transaction.
        """
        if not self._budget:
            return
        with self._lock:
            self._handed = {}
        self._write()
        with self._noticing_its_end():
            self._account = read_account(self._evaluation.pk, self.holder)

    async def close(self) -> None:
        """Hold nothing any more, but for what was used and not stored."""
        if self._asking is not None:
            self._asking.cancel()
        if self._has_held:
            await patiently(self._let_go)

    @property
    def _is_counted(self) -> bool:
        return CALLS in self._budget or self._counts_use

    @property
    def _counts_use(self) -> bool:
        return TOKENS in self._budget or MONEY in self._budget

    def _refuse_if_stopped(self) -> None:
        if self._is_over:
            raise self._refusal()

    def _refusal(self) -> ChatError:
        is_gone = "the evaluation is gone, and its budget with it"
        return ChatError(
            is_gone if self._is_gone else f"the budget of {self.stopped_by} is used up", "budget"
        )

    @property
    def _is_over(self) -> bool:
        return bool(self.stopped_by or self._is_gone)

    @contextlib.contextmanager
    def _noticing_its_end(self) -> Iterator[None]:
        """Others go on in this process when the evaluation has been deleted."""
        try:
            yield
        except Evaluation.DoesNotExist:
            self._is_gone = True

    def _is_out_of_time(self) -> bool:
        account = self._account
        if SECONDS not in self._budget or account is None:
            return False
        return account.running_seconds + time.monotonic() - account.at >= float(self._budget[SECONDS])

    async def _ask_for_all(self) -> None:
        """Answer all that stand in line, in turn."""
        try:
            while self._line:
                # At least, whoever is ready at this moment comes along.
                await asyncio.sleep(max(self._asked_at + SECONDS_BETWEEN - time.monotonic(), 0))
                self._asked_at = time.monotonic()
                self._ended.clear()
                batch = [wish for wish in self._line if not wish.answer.done()]
                self._line = batch.copy()
                expected = await patiently(self._admit, batch)
                self._answer(batch, expected)
                if self._line:
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._ended.wait(), LOOK_AGAIN)
        except Exception as failure:  # noqa: BLE001  whoever waits is told
            for wish in self._line:
                if not wish.answer.done():
                    wish.answer.set_exception(failure)
            self._line = []
        finally:
            self._asking = None
            for wish in self._line:
                wish.answer.cancel()

    def _answer(self, batch: Sequence[_Wish], expected: Sequence[Used]) -> None:
        for wish, one in zip(batch, expected, strict=False):
            if wish.answer.done():
                # It was cancelled meanwhile.
                self.settle(wish.role, one, NOTHING)
            else:
                wish.answer.set_result(one)
        self._line = self._line[len(expected) :]
        if self._is_over:
            for wish in self._line:
                if not wish.answer.done():
                    wish.answer.set_exception(self._refusal())
            self._line = []

    def _admit(self, batch: Sequence[_Wish]) -> list[Used]:
        """Admit as many of them as may be made now, from the first on; in the thread of the database."""
        admitted: list[tuple[str, Used]] = []
        with self._noticing_its_end(), transaction.atomic():
            self._account = account = read_account(self._evaluation.pk, self.holder, locked=True)
            for wish in batch:
                expected = self._expect(account, wish)
                if not self._has_room(account):
                    break
                with self._lock:
                    _add(self._under_way, wish.role, expected)
                admitted.append((wish.role, expected))
            if admitted:
                self._write()
        return [expected for _, expected in admitted]

    def _expect(self, account: Account, wish: _Wish) -> Used:
        if not self._counts_use:
            return Used(1)
        return account.means.get(wish.role) or wish.guess()

    def _has_room(self, account: Account) -> bool:
        """Whether one more call may be made now; notes when none may be any more."""
        with self._lock:
            certain = account.used + _total(self._pending, self._handed, self._lost)
            total = certain + account.held + _total(self._under_way)
        part = _find_used_up(self._budget, certain, total)
        if part:
            self._stopped_by = self._stopped_by or part
        return not self.stopped_by and not _may_be_used_up(self._budget, total)

    def _write(self) -> None:
        with self._lock:
            own = (self._under_way, self._pending, self._handed, self._lost)
            roles = {role for sums in own for role in sums}
            holds = {role: _total_of(role, own) for role in roles}
        if holds and self._is_counted:
            self._has_held = True
            write_holds(self._evaluation.pk, self.holder, holds)

    def _let_go(self) -> None:
        with self._lock:
            self._handed = {}
            is_left = _total(self._pending, self._under_way, self._lost) != NOTHING
        if is_left:
            self._write()
        else:
            remove_holds(self._evaluation.pk, self.holder)


def _find_used_up(budget: Mapping[str, Any], certain: Used, total: Used) -> str:
    """The part that no further call may use any of. A call under way is a call, whatever comes of it."""
    if CALLS in budget and total.calls >= budget[CALLS]:
        return CALLS
    if TOKENS in budget and certain.tokens >= budget[TOKENS]:
        return TOKENS
    # What has no price can't be held to one.
    if MONEY in budget and (certain.unpriced or float(certain.money) >= float(budget[MONEY])):
        return MONEY
    return ""


def _may_be_used_up(budget: Mapping[str, Any], total: Used) -> bool:
    """Whether calls under way are expected to use up the rest."""
    if TOKENS in budget and total.tokens >= budget[TOKENS]:
        return True
    return MONEY in budget and float(total.money) >= float(budget[MONEY])


def _add(sums: dict[str, Used], role: str, used: Used) -> None:
    sums[role] = sums.get(role, NOTHING) + used


def _total(*sums: Mapping[str, Used]) -> Used:
    return sum((used for one in sums for used in one.values()), NOTHING)


def _total_of(role: str, sums: Iterable[Mapping[str, Used]]) -> Used:
    return sum((one.get(role, NOTHING) for one in sums), NOTHING)
