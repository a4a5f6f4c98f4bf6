"""Inside an evaluation: model calls are answered from kept answers, counted by role, and stopped by the budget.

Knows nothing of endpoints or their limits: the models that it wraps do. Decides when to store nothing by itself.
"""

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from types import TracebackType
from typing import Self
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings

from evolution.limits.tries import watch_tries
from evolution.loop.call_keys import finish_key, start_key, write_reply, write_request
from evolution.loop.call_store import KeptReply, NewCall, forget_calls, insert_calls, look_up, touch_calls
from evolution.loop.coalescing import Coalesced
from evolution.loop.metering import Meter, Permit
from evolution.loop.prices import cost_of
from evolution.loop.usage import RoleUse, add_usage, count_tokens
from evolution.models import Evaluation
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest
from harness_repo.runtime.waiting import uncounted


@dataclass
class Spent:
    """What a ledger has to store: answers to keep, and what was used of each role's model."""

    calls: dict[UUID, NewCall] = field(default_factory=dict)
    usage: dict[str, RoleUse] = field(default_factory=dict)
    # kept answers whose last use is to be written down, and those that nobody is to be given again
    touched: set[UUID] = field(default_factory=set)
    forgotten: set[UUID] = field(default_factory=set)


class _Desk:
    """What the ledgers of one event loop share: an identical call that another one makes is not made again."""

    def __init__(self) -> None:
        self.lookups: Coalesced[UUID, KeptReply] = Coalesced(look_up)
        self.under_way: dict[UUID, asyncio.Future[ChatReply | None]] = {}
        # Answered, and not yet to be found in the database.
        self.unsaved: dict[UUID, ChatReply] = {}


_desks: WeakKeyDictionary[asyncio.AbstractEventLoop, _Desk] = WeakKeyDictionary()


def _desk() -> _Desk:
    return _desks.setdefault(asyncio.get_running_loop(), _Desk())


class Ledger:
    """What the models of one evaluation are asked in this process; used from one event loop.

    An answer is kept or counted nowhere until what `take` moves out is stored.
    """

    def __init__(self, evaluation: Evaluation) -> None:
        # Calls that models have under way now.
        self.in_flight = 0
        # Called in the event loop when there is something to store, or a budget is used up.
        self.on_news: Callable[[], None] | None = None
        self.pk = evaluation.pk
        self._keeps: bool = settings.EVALUATION_CACHE
        # Answers of its own only, so that it finds them after a break.
        self._salt = f"evaluation:{evaluation.pk}" if evaluation.is_fresh else ""
        self._meter = Meter(evaluation)
        self._spent = Spent()
        self._handed: set[UUID] = set()

    @property
    def stopped_by(self) -> str:
        """The part of the budget that is used up: calls, tokens, money or seconds; "" while none is."""
        return self._meter.stopped_by

    def wrap(self, role: str, named: NamedModel) -> NamedModel:
        """The model of a role, asked through this ledger."""
        return NamedModel(_KeptModel(self, role, named, self._salt), named.name)

    def take(self) -> Spent:
        """Move out what is to be stored now, with `store_spent`; what was taken before has to be stored by now."""
        for key in self._handed:
            _desk().unsaved.pop(key, None)
        spent, self._spent = self._spent, Spent()
        self._meter.hand_over()
        self._handed = set(spent.calls)
        return spent

    def forget(self, keys: Iterable[str | UUID]) -> None:
        """Keep these answers no longer: they were of no use, and whoever asks again is to get others."""
        for key in (UUID(str(key)) for key in keys if key):
            self._spent.calls.pop(key, None)
            self._spent.forgotten.add(key)
            _desk().unsaved.pop(key, None)
        self._tell()

    def refresh(self) -> None:
        """Look up what all processes have used of the budget, in the thread of the database."""
        self._meter.refresh()

    async def close(self) -> None:
        """Give back what was taken out of the budget and not used. Everything has to be stored before."""
        for key in self._handed:
            _desk().unsaved.pop(key, None)
        self._handed.clear()
        await self._meter.close()

    async def answer(self, asked: "_KeptModel", request: ChatRequest) -> ChatReply:
        """A kept answer, or the model's; ChatError as the model raises it, or of the kind "budget"."""
        if not self._keeps:
            return await self._make(asked, request)
        key = asked.key_of(request)
        desk = _desk()
        while (under_way := desk.under_way.get(key)) is not None:
            # One that was cancelled, or had no budget, leaves it to us.
            with uncounted():
                shared = await asyncio.shield(under_way)
            if shared is not None:
                return self._count_kept(asked, key, shared)
        return await self._lead(desk, asked, request, key)

    async def _lead(self, desk: _Desk, asked: "_KeptModel", request: ChatRequest, key: UUID) -> ChatReply:
        """Find or make the answer for all that ask the same meanwhile."""
        future = desk.under_way[key] = asyncio.get_running_loop().create_future()
        try:
            with uncounted():
                reply = await self._find(desk, asked, key)
            if reply is None:
                reply = await self._make(asked, request, key)
            future.set_result(reply)
        except ChatError as failure:
            if failure.kind != "budget":
                future.set_exception(_copy(failure))
                # Nobody else may be waiting for it.
                future.exception()
            raise
        finally:
            del desk.under_way[key]
            if not future.done():
                future.set_result(None)
        return reply

    async def _find(self, desk: _Desk, asked: "_KeptModel", key: UUID) -> ChatReply | None:
        unsaved = desk.unsaved.get(key)
        if unsaved is not None:
            return self._count_kept(asked, key, unsaved)
        kept = await desk.lookups.get(key)
        if kept is None or key in self._spent.forgotten:
            return None
        if kept.is_stale:
            self._spent.touched.add(key)
        return self._count_kept(asked, key, kept.reply)

    def _count_kept(self, asked: "_KeptModel", key: UUID, reply: ChatReply) -> ChatReply:
        self._use(asked).cached += 1
        self._tell()
        return replace(reply, cache_key=key.hex, is_cached=True)

    async def _make(self, asked: "_KeptModel", request: ChatRequest, key: UUID | None = None) -> ChatReply:
        """Ask the model itself, if the budget allows it, and note the answer."""
        reply = await self._ask(asked, request)
        if key is not None:
            reply, text = write_reply(reply)
            reply = replace(reply, cache_key=key.hex)
            self._spent.calls[key] = NewCall(key, asked.role, request.model[:200], text)
            _desk().unsaved[key] = reply
        self._tell()
        return reply

    async def _ask(self, asked: "_KeptModel", request: ChatRequest) -> ChatReply:
        permit = self._meter.permit(asked.role, asked.name, request)
        pay = partial(self._admit, permit) if self._meter.is_limited else None

        async def pay_again(_failure: ChatError) -> None:
            self._use(asked).failed += 1
            permit.use()
            if pay is not None and not asked.announces_requests:
                await pay()

        if pay is not None and not asked.announces_requests:
            await pay()
        self.in_flight += 1
        try:
            with watch_tries(pay_again, pay):
                reply = await asked.model.complete(request)
        except asyncio.CancelledError:
            # Nobody wanted it any more: that is no failure.
            permit.lose()
            raise
        except BaseException as failure:
            is_unpaid = pay is not None and not permit.is_held
            if not (is_unpaid or (isinstance(failure, ChatError) and failure.kind == "budget")):
                self._use(asked).failed += 1
            permit.use()
            self._tell()
            raise
        finally:
            self.in_flight -= 1
        self._count_made(asked, reply, permit)
        return reply

    async def _admit(self, permit: Permit) -> None:
        try:
            await permit.take()
        except ChatError:
            self._tell()
            raise

    def _count_made(self, asked: "_KeptModel", reply: ChatReply, permit: Permit) -> None:
        usage = reply.usage
        cost = cost_of(asked.name, usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens)
        self._use(asked).count(usage, cost)
        permit.use(count_tokens(usage.prompt_tokens) + count_tokens(usage.completion_tokens), cost)

    def _use(self, asked: "_KeptModel") -> RoleUse:
        use = self._spent.usage.get(asked.role)
        if use is None:
            use = self._spent.usage[asked.role] = RoleUse(asked.name)
        return use

    def _tell(self) -> None:
        if self.on_news is not None:
            self.on_news()


class _KeptModel:
    """A model behind a ledger; passes on being entered and left as a context manager."""

    def __init__(self, ledger: Ledger, role: str, named: NamedModel, salt: str) -> None:
        self.model, self.name = named
        self.role = role
        self.announces_requests = getattr(self.model, "announces_requests", False)
        self._ledger = ledger
        # A model that is a program answers otherwise after a change of it.
        origin = role, getattr(self.model, "identity", ""), salt
        self._start = start_key(*origin)
        # The seed that a call is sent follows from its repeat; one that is sent none is another call.
        self._start_seedless = (
            self._start if getattr(self.model, "seeds", True) else start_key(*origin, "no seed")
        )

    def key_of(self, request: ChatRequest) -> UUID:
        start = self._start if "seed" in request.parameters else self._start_seedless
        return finish_key(start, request.model, write_request(request))

    async def complete(self, request: ChatRequest) -> ChatReply:
        return await self._ledger.answer(self, request)

    async def __aenter__(self) -> Self:
        if isinstance(self.model, contextlib.AbstractAsyncContextManager):
            await self.model.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, where: TracebackType | None
    ) -> None:
        if isinstance(self.model, contextlib.AbstractAsyncContextManager):
            await self.model.__aexit__(kind, raised, where)


def _copy(failure: ChatError) -> ChatError:
    """The same for somebody else: a traceback belongs to one."""
    return ChatError(str(failure), failure.kind, retryable=failure.retryable, retry_after=failure.retry_after)


def store_spent(spent: Sequence[tuple[Ledger, Spent]]) -> None:
    """Store what was taken from several ledgers, inside the caller's transaction and in the thread of the database.

    Rows that other workers write too are written in one order by all, so that nobody waits for each other: forgotten
    calls, kept calls, marks of use, usage; each by its key.
    """
    forget_calls({key for _, one in spent for key in one.forgotten})
    insert_calls([call for _, one in spent for call in one.calls.values()])
    touch_calls({key for _, one in spent for key in one.touched})
    for ledger, one in sorted(spent, key=lambda pair: pair[0].pk):
        add_usage(ledger.pk, one.usage)
        ledger.refresh()
