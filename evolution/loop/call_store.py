"""Kept answers of model calls in the database: looked up, stored and thrown away, many in one statement."""

import contextlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.db import connection
from django.utils import timezone

from evolution.loop.call_keys import read_reply
from evolution.models import ModelCall
from harness_repo.runtime.chat import ChatReply

# A kept answer is marked as used at most so often.
TOUCH_AFTER = timedelta(days=1)


@dataclass(frozen=True)
class NewCall:
    """An answer to be kept; `reply` is JSON."""

    key: UUID
    role: str
    model: str
    reply: str


@dataclass(frozen=True)
class KeptReply:
    """An answer that was kept; its last use is to be marked when the mark `is_stale`."""

    reply: ChatReply
    is_stale: bool


_LOOK_UP = """
SELECT key, reply::text, used_at < %s FROM evolution_modelcall WHERE key = ANY(%s::uuid[])
"""


def look_up(keys: Collection[UUID]) -> Mapping[UUID, KeptReply]:
    """The kept answers with these keys, in one question; it is asked so often that the ORM's share would show."""
    found = {}
    with connection.cursor() as cursor:
        cursor.execute(_LOOK_UP, [timezone.now() - TOUCH_AFTER, [str(key) for key in keys]])
        for key, reply, is_stale in cursor.fetchall():
            # What another release has written in a way of its own is asked for again.
            with contextlib.suppress(KeyError, TypeError):
                found[key] = KeptReply(read_reply(json.loads(reply)), is_stale)
    return found


_INSERT = """
INSERT INTO evolution_modelcall (key, role, model, reply, created_at, used_at)
SELECT key, role, model, reply, now(), now()
FROM jsonb_to_recordset(%s::jsonb) AS new (key uuid, role text, model text, reply jsonb)
ON CONFLICT (key) DO NOTHING
"""


def insert_calls(calls: Iterable[NewCall]) -> None:
    """Keep answers; those that are kept already stay. One statement with one value, in the order of the keys."""
    rows = [
        f'{{"key":"{call.key}","role":{json.dumps(call.role)},"model":{json.dumps(call.model)},'
        f'"reply":{call.reply}}}'
        for call in sorted(calls, key=lambda call: call.key)
    ]
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(_INSERT, [f"[{','.join(rows)}]"])


def forget_calls(keys: Collection[UUID]) -> None:
    """Keep these answers no longer; inside a transaction."""
    if keys:
        calls = ModelCall.objects.filter(key__in=keys)
        # Locked in order; the deletion itself has none.
        list(calls.select_for_update().order_by("key").values_list("key"))
        calls.delete()


def touch_calls(keys: Collection[UUID]) -> None:
    """Mark answers as used now; inside a transaction."""
    if keys:
        # One that is locked is being marked, or deleted.
        free = ModelCall.objects.filter(key__in=keys).select_for_update(skip_locked=True).order_by("key")
        used = list(free.values_list("key", flat=True))
        ModelCall.objects.filter(key__in=used).update(used_at=timezone.now())
