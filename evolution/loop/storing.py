"""Inside an evaluation: what workers have made, written in one transaction: results, kept calls, what was spent.

A batch is stored once, also when the connection broke while it was committed and nobody said whether it was.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID, uuid4

from django.db import DataError, IntegrityError, connection, transaction
from django.db.models.functions import Now

from evolution.loop.budgets import life_signs
from evolution.loop.clock import database_time
from evolution.loop.evaluation import stop_for_budget
from evolution.loop.kept_calls import Ledger, Spent, store_spent
from evolution.loop.outcomes import NOT_STORED, CaseOutcome
from evolution.models import CaseResult, DatasetCase, Evaluation, EvaluationShard, StoredBatch
from evolution.states import EvaluationState, ShardState

# What is wrong with a result itself, and not with the database.
UNSTORABLE = (DataError, IntegrityError, ValueError, TypeError, OverflowError, RecursionError)
# A worker that stored nothing for so long is not there any more, and asks for no receipt.
RECEIPT_KEPT = timedelta(days=1)

logger = logging.getLogger(__name__)


class Finished(NamedTuple):
    """A pair that has been tried."""

    evaluation_id: int
    case: DatasetCase
    repeat: int
    # how often, this time included
    attempts: int
    outcome: CaseOutcome


class Standing(NamedTuple):
    """What a worker has to know of an evaluation."""

    state: str
    stopped_by: str


@dataclass
class Batch:
    """What is stored together. It is kept in memory until it is, and may be tried any number of times."""

    finished: Sequence[Finished]
    # what ledgers have moved out, with the ledger
    spent: Sequence[tuple[Ledger, Spent]] = ()
    # shards all of whose pairs have a result with this batch, and who holds them
    ended: Sequence[int] = ()
    holder: str = ""
    # the evaluations that are worked on
    evaluations: Sequence[int] = ()
    # evaluations whose budget is used up, and the part of it
    stopped: Mapping[int, str] = field(default_factory=dict)
    # written down for the holder with what is stored; a holder stores one batch after the other
    token: UUID = field(default_factory=uuid4, init=False)
    has_been_tried: bool = field(default=False, init=False)


def store_batch(batch: Batch) -> dict[int, Standing]:
    """Store the batch, each pair once whoever else has made it; returns where its evaluations stand.

    An evaluation that is gone is left out. A result that the database refuses becomes an error.
    """
    try:
        return _store(batch, batch.finished)
    except UNSTORABLE:
        logger.exception("a batch of %d results can't be stored; trying one by one", len(batch.finished))
    stored = [_store_alone(one) for one in batch.finished]
    return _store(batch, [one for one in stored if one is not None])


def _store(batch: Batch, finished: Iterable[Finished]) -> dict[int, Standing]:
    with transaction.atomic():
        is_new, standings = _begin(batch)
        if not is_new:
            return standings
        _insert(one for one in finished if one.evaluation_id in standings)
        if batch.ended:
            end_shards(batch.ended, batch.holder)
        # Last: it locks rows that other workers write, too.
        store_spent([(ledger, spent) for ledger, spent in batch.spent if ledger.pk in standings])
        for pk, part in batch.stopped.items():
            stop_for_budget(pk, part)
    return standings


# A transaction that was committed has left the batch's token; for one that has not ended yet, this waits.
_BEGIN = """
    WITH receipt AS (
        INSERT INTO evolution_storedbatch AS known (holder, token, stored_at)
        VALUES (%(holder)s, %(token)s, clock_timestamp())
        ON CONFLICT (holder) DO UPDATE SET token = EXCLUDED.token, stored_at = EXCLUDED.stored_at
        WHERE known.token <> EXCLUDED.token RETURNING token
    )
    SELECT EXISTS (SELECT FROM receipt), id, state, stopped_by
    FROM evolution_evaluation WHERE id = ANY(%(evaluations)s)
"""
# What lost its connection may hold its locks until the server notices; the thread is wanted for leases meanwhile.
_WAIT_A_MOMENT = "SET LOCAL lock_timeout = '1s'"
_WAIT_AS_USUAL = "SET LOCAL lock_timeout TO DEFAULT"


def _begin(batch: Batch) -> tuple[bool, dict[int, Standing]]:
    """Whether the batch has not been stored before, and where the evaluations stand."""
    values: dict[str, Any] = {
        "holder": batch.holder,
        "token": batch.token,
        "evaluations": list(batch.evaluations),
    }
    is_retry, batch.has_been_tried = batch.has_been_tried, True
    with connection.cursor() as cursor:
        if is_retry:
            cursor.execute(_WAIT_A_MOMENT)
        cursor.execute(_BEGIN, values)
        rows = cursor.fetchall()
        if is_retry:
            cursor.execute(_WAIT_AS_USUAL)
    return bool(rows and rows[0][0]), {pk: Standing(state, stopped) for _, pk, state, stopped in rows}


def forget_receipt(holder: str) -> None:
    """Forget what a worker stored last, once it stores nothing any more."""
    StoredBatch.objects.filter(holder=holder).delete()


def prune_receipts() -> None:
    """Forget those of workers that were killed."""
    StoredBatch.objects.filter(stored_at__lt=Now() - RECEIPT_KEPT).delete()


def _insert(finished: Iterable[Finished]) -> None:
    """Insert results, each pair once: what is there stays, but for an error that there is a score for now."""
    # The same row twice in one statement would be refused.
    rows = {(one.evaluation_id, one.case.pk, one.repeat): _to_row(one) for one in finished}
    if not rows:
        return
    with connection.cursor() as cursor:
        cursor.execute(_insert_statement(), [_ENCODER.encode(list(rows.values()))])


def _to_row(one: Finished) -> dict[str, Any]:
    """Column -> value."""
    key = {"evaluation_id": one.evaluation_id, "case_id": one.case.pk, "repeat": one.repeat}
    return {**one.outcome.to_fields(), **key, "attempts": one.attempts}


def _encode_other(value: object) -> str:
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{type(value).__name__} can't be stored")


# Not a number is no JSON, and an error like what else the database refuses.
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_encode_other, separators=(",", ":"))


@cache
def _insert_statement() -> str:
    """One value for all rows and columns: a text that is written and escaped once costs a fraction of many."""
    fields = [field for field in CaseResult._meta.concrete_fields if field.column not in ("id", "created_at")]
    names = ", ".join(str(field.column) for field in fields)
    types = ", ".join(f"{field.column} {field.db_type(connection)}" for field in fields)
    updates = ", ".join(f"{field.column} = EXCLUDED.{field.column}" for field in fields)
    return f"""
        INSERT INTO evolution_caseresult AS stored ({names}, created_at)
        SELECT {names}, now() FROM jsonb_to_recordset(%s::jsonb) AS made ({types})
        ON CONFLICT (evaluation_id, case_id, repeat) DO UPDATE SET {updates}
        WHERE stored.error_kind <> '' AND EXCLUDED.error_kind = ''
    """  # noqa: S608  names of our own columns


def _store_alone(one: Finished) -> Finished | None:
    """Store one outcome; else return the error that stands for it, so that it is not made again for ever."""
    try:
        with transaction.atomic():
            _insert([one])
    except UNSTORABLE as failure:
        logger.exception("the result of %s, repeat %d, cannot be stored", one.case, one.repeat)
        error = f"the result cannot be stored: {type(failure).__name__}"
        return one._replace(outcome=CaseOutcome(error_kind=NOT_STORED, error=error))
    return None


def end_shards(shards: Sequence[int], holder: str) -> int:
    """End shards that are this holder's; returns how many were."""
    held = EvaluationShard.objects.filter(pk__in=shards, holder=holder, state=ShardState.RUNNING)
    return held.update(state=ShardState.DONE, lease_until=None)


def read_standings(evaluations: Sequence[int]) -> dict[int, Standing]:
    """Where the evaluations stand; those that are gone are left out."""
    rows = Evaluation.objects.filter(pk__in=evaluations).values_list("pk", "state", "stopped_by")
    return {pk: Standing(state, stopped_by) for pk, state, stopped_by in rows}


def show_life(at_work: Sequence[int], evaluations: Sequence[int]) -> dict[int, Standing]:
    """Say that somebody works on evaluations; returns where all stand."""
    running = Evaluation.objects.filter(pk__in=at_work, state=EvaluationState.RUNNING)
    running.update(**life_signs(database_time()))
    return read_standings(evaluations)
