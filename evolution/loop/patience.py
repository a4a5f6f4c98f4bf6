"""Inside an evaluation: the database may go away and come back, and the work in memory waits for it."""

import asyncio
import logging
import time
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import InterfaceError, InternalError, OperationalError, connection
from psycopg.errors import ReadOnlySqlTransaction

P = ParamSpec("P")
T = TypeVar("T")

# What a restart, a fail-over or a broken connection looks like; a deadlock is one too, and is gone at the next try.
AWAY = (OperationalError, InterfaceError)
FIRST_PAUSE = 0.1
LONGEST_PAUSE = 1.0

logger = logging.getLogger(__name__)


async def patiently(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Do a piece of database work that is safe to repeat, again and again while the database is away.

    Raises what it raised last when that takes longer than EVALUATION_DATABASE_PATIENCE seconds, and at once inside
    a transaction, which a lost connection has ended.
    """
    deadline = time.monotonic() + settings.EVALUATION_DATABASE_PATIENCE
    pause = FIRST_PAUSE
    while True:
        try:
            return await sync_to_async(work)(*args, **kwargs)
        except (*AWAY, InternalError) as failure:
            if not _is_away(failure):
                raise
            if time.monotonic() > deadline or not await sync_to_async(_let_go)():
                raise
            logger.warning("the database is away (%s); trying again in %.1f s", _describe(failure), pause)
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


def _let_go() -> bool:
    """Close a connection that is of no use any more, so that the next query opens another; False in a transaction."""
    if connection.in_atomic_block:
        return False
    # Not only when it is broken: one to a server that writes no more works as well as ever.
    connection.close()
    return True


def _is_away(failure: Exception) -> bool:
    """Whether a failure passes: also where another server has taken over, and this one only reads."""
    return isinstance(failure, AWAY) or isinstance(failure.__cause__, ReadOnlySqlTransaction)


def _describe(failure: Exception) -> str:
    return " ".join(str(failure).split())[:200] or type(failure).__name__
