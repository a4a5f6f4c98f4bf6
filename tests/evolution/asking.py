"""Asks a model through a ledger, and stores what comes of it as workers do."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from asgiref.sync import async_to_sync, sync_to_async
from django.db import transaction

from evolution.loop.kept_calls import Ledger, Spent, store_spent
from evolution.models import Evaluation, EvaluationUsage
from evolution.ports import NamedModel
from harness_repo.runtime.chat import ChatReply, ChatRequest, Usage

REQUEST = ChatRequest("m", [{"role": "user", "content": "3号链接多少钱？"}])


class Endpoint:
    """Answers with a number of its own for each call; `before` may wait or raise."""

    def __init__(self, before: Callable[[], Awaitable[object]] | None = None, **fields: Any) -> None:
        self.before = before
        self.fields = fields
        self.asked = 0

    async def complete(self, _request: ChatRequest) -> ChatReply:
        self.asked += 1
        number = self.asked
        if self.before is not None:
            await self.before()
        return ChatReply(
            **{"content": f"answer {number}", "usage": Usage(100, 20, 40), "latency_ms": 7.5, **self.fields}
        )


def store_alone(ledger: Ledger, spent: Spent) -> None:
    with transaction.atomic():
        store_spent([(ledger, spent)])


def work(ledger: Ledger, *asking: Callable[[], Awaitable[Any]]) -> list[Any]:
    """Ask all at once in an event loop and store what came of it; returns replies and errors."""

    async def go() -> list[Any]:
        replies = await asyncio.gather(*(ask() for ask in asking), return_exceptions=True)
        spent = ledger.take()
        await sync_to_async(store_alone)(ledger, spent)
        await ledger.close()
        return replies

    return async_to_sync(go)()


def ask(evaluation: Evaluation, model: Any, *requests: ChatRequest, role: str = "policy") -> list[Any]:
    ledger = Ledger(evaluation)
    wrapped = ledger.wrap(role, NamedModel(model, "m")).model
    return work(ledger, *(lambda request=request: wrapped.complete(request) for request in requests))


def numbered(count: int) -> list[ChatRequest]:
    return [replace(REQUEST, repeat=number) for number in range(count)]


def usage(evaluation: Evaluation) -> tuple[int, int, int]:
    row = EvaluationUsage.objects.get(evaluation=evaluation)
    return row.made, row.cached, row.failed
