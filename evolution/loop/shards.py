"""Inside an evaluation: one task works on a shard under a lease, and stores each pair as it is finished.

A worker that dies loses what was in flight: its lease ends, and another one makes only the pairs that are missing.
"""

import asyncio
import contextlib
import logging
import os
import socket
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from asgiref.sync import async_to_sync, sync_to_async
from django.conf import settings
from django.db import DataError, IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from evolution.actors import SYSTEM
from evolution.errors import StaleState
from evolution.loop.evaluation import ACTIVE, Pair, finish_evaluation, missing_pairs, stored_pairs
from evolution.loop.scoring import LONGEST_ERROR, CaseOutcome, Scorer, clean_json, score_case
from evolution.models import CaseResult, DatasetCase, Evaluation, EvaluationShard
from evolution.states import EvaluationState, ShardState
from evolution.transitions import move

# A shard whose workers died so often is ended with errors; a case may be what kills them.
MOST_ATTEMPTS = 5
WORKER_LOST = "worker_lost"
NOT_STARTED = "not_started"
NOT_STORED = "not_stored"
# An evaluation that nobody has worked on for so long is queued again.
STANDSTILL = timedelta(seconds=30)
LONGEST_WAIT = timedelta(minutes=10)

# What is wrong with a result itself, and not with the database.
UNSTORABLE = (DataError, IntegrityError, ValueError, TypeError, OverflowError, RecursionError)

logger = logging.getLogger(__name__)

Finished = tuple[DatasetCase, int, CaseOutcome]


class LeaseLostError(Exception):
    """The shard has another holder, or its evaluation was cancelled: stop."""


def claim_shard(shard_id: int) -> EvaluationShard | None:
    """Take a shard that is queued or whose lease has ended; None when it is gone, taken or done."""
    now = timezone.now()
    holder = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"[-100:]
    is_free = Q(state=ShardState.QUEUED) | Q(state=ShardState.RUNNING, lease_until__lt=now)
    claimed = EvaluationShard.objects.filter(is_free, pk=shard_id, evaluation__state__in=ACTIVE).update(
        state=ShardState.RUNNING, holder=holder, lease_until=now + _lease(), attempts=F("attempts") + 1
    )
    if not claimed:
        return None
    shard = EvaluationShard.objects.select_related("evaluation__harness__judge").get(pk=shard_id)
    _mark_running(shard.evaluation)
    return shard


def _mark_running(evaluation: Evaluation) -> None:
    now = timezone.now()
    with contextlib.suppress(StaleState):
        if evaluation.state == EvaluationState.QUEUED:
            started = evaluation.started_at or now
            move(evaluation, EvaluationState.RUNNING, SYSTEM, started_at=started, heartbeat_at=now)


def work_shard(shard: EvaluationShard, scorer: Scorer) -> bool:
    """Make the shard's missing pairs; say whether it is done, False when it was taken away.

    A failure is raised and costs the shard an attempt; the last one ends it with errors instead.
    """
    pairs = missing_pairs(shard, stored_pairs(shard.evaluation))
    cases = DatasetCase.objects.in_bulk({case for case, _ in pairs})
    try:
        kept = async_to_sync(_score_pairs)(shard, [(cases[case], repeat) for case, repeat in pairs], scorer)
    except Exception as failure:
        if shard.attempts < MOST_ATTEMPTS:
            _release(shard)
            raise
        logger.exception("%s failed %d times", shard, shard.attempts)
        return give_up(shard, f"given up after {shard.attempts} attempts: {_first(failure)!r}", WORKER_LOST)
    # Whatever else stops the worker does so in an orderly way, and is not the shard's doing.
    except BaseException:
        _release(shard, given_back=1)
        raise
    if not kept:
        _release(shard, given_back=1)
        return False
    return _end(shard)


def _first(failure: BaseException) -> BaseException:
    """What a group of tasks failed of."""
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return failure


def _release(shard: EvaluationShard, *, given_back: int = 0) -> None:
    """Let the next worker have it without waiting for the lease to end."""
    attempts = F("attempts") - given_back
    _held(shard).update(state=ShardState.QUEUED, holder="", lease_until=None, attempts=attempts)


def _end(shard: EvaluationShard) -> bool:
    return bool(_held(shard).update(state=ShardState.DONE, lease_until=None))


async def _score_pairs(
    shard: EvaluationShard, pairs: Sequence[tuple[DatasetCase, int]], scorer: Scorer
) -> bool:
    """Score and store all pairs; False when the shard was taken away meanwhile."""
    is_ours = True
    finished: asyncio.Queue[Finished] = asyncio.Queue()
    places = asyncio.Semaphore(settings.EVALUATION_CONCURRENCY)

    async def score(case: DatasetCase, repeat: int) -> None:
        async with places:
            outcome = await score_case(case, scorer, repeat)
        await finished.put((case, repeat, outcome))

    try:
        async with contextlib.AsyncExitStack() as connections, asyncio.TaskGroup() as group:
            # Kept open for the whole shard.
            for connection in scorer.connections():
                await connections.enter_async_context(connection)
            renewal = group.create_task(_renew_lease(shard))
            for case, repeat in pairs:
                group.create_task(score(case, repeat))
            await _store_all(shard, finished, len(pairs))
            renewal.cancel()
    except* LeaseLostError:
        is_ours = False
    return is_ours


async def _store_all(shard: EvaluationShard, finished: "asyncio.Queue[Finished]", count: int) -> None:
    """Store outcomes as they come, those that came while the last ones were stored together."""
    while count:
        batch = [await finished.get()]
        while not finished.empty():
            batch.append(finished.get_nowait())
        await sync_to_async(store_outcomes)(shard, batch)
        count -= len(batch)


def store_outcomes(shard: EvaluationShard, batch: Sequence[Finished]) -> None:
    """Store results, each (case, repeat) once whoever else has made it; LeaseLostError when nobody wants them."""
    evaluation = shard.evaluation
    try:
        _insert(evaluation, batch)
    except UNSTORABLE:
        for one in batch:
            _store_one(evaluation, one)
    running = Evaluation.objects.filter(pk=evaluation.pk, state=EvaluationState.RUNNING)
    if not running.update(heartbeat_at=timezone.now()):
        raise LeaseLostError


def _insert(evaluation: Evaluation, batch: Sequence[Finished]) -> None:
    results = [
        CaseResult(evaluation=evaluation, case=case, repeat=repeat, **outcome.to_fields())
        for case, repeat, outcome in batch
    ]
    with transaction.atomic():
        CaseResult.objects.bulk_create(results, ignore_conflicts=True)


def _store_one(evaluation: Evaluation, finished: Finished) -> None:
    """Store one outcome; one that the database refuses becomes an error, so that it is not made again for ever."""
    case, repeat, _ = finished
    try:
        _insert(evaluation, [finished])
    except UNSTORABLE as failure:
        logger.exception("the result of %s, repeat %d, cannot be stored", case, repeat)
        error = f"the result cannot be stored: {type(failure).__name__}"
        _insert(evaluation, [(case, repeat, CaseOutcome(error_kind=NOT_STORED, error=error))])


async def _renew_lease(shard: EvaluationShard) -> None:
    while True:
        await asyncio.sleep(settings.EVALUATION_LEASE_SECONDS / 3)
        await sync_to_async(renew_lease)(shard)


def renew_lease(shard: EvaluationShard) -> None:
    """Prolong the lease and show life on the evaluation; LeaseLostError when it is no longer ours."""
    now = timezone.now()
    ours = _held(shard).filter(evaluation__state=EvaluationState.RUNNING)
    if not ours.update(lease_until=now + _lease()):
        raise LeaseLostError
    Evaluation.objects.filter(pk=shard.evaluation_id).update(heartbeat_at=now)


def _lease() -> timedelta:
    return timedelta(seconds=settings.EVALUATION_LEASE_SECONDS)


def _held(shard: EvaluationShard) -> QuerySet[EvaluationShard]:
    return EvaluationShard.objects.filter(pk=shard.pk, holder=shard.holder, state=ShardState.RUNNING)


def work_evaluation(
    evaluation: Evaluation, scorer: Scorer, progress: Callable[[int, int], None] | None = None
) -> None:
    """Work on an evaluation here until it has ended, beside any workers that do the same."""
    while not finish_evaluation(evaluation) and evaluation.state in ACTIVE:
        shard = _claim_any(evaluation)
        if shard is None:
            # Others hold what is left; their leases end when they die.
            time.sleep(0.5)
            continue
        work_shard(shard, scorer)
        if progress is not None:
            progress(evaluation.results.count(), evaluation.total)


def _claim_any(evaluation: Evaluation) -> EvaluationShard | None:
    for shard_id in evaluation.shards.exclude(state=ShardState.DONE).values_list("pk", flat=True):
        shard = claim_shard(shard_id)
        if shard is not None:
            return shard
    return None


def collect_abandoned(now: datetime) -> list[int]:
    """Shards that want a worker and have none: the lease has ended, or the message that queued them is lost.

    Those that have been tried too often are ended with errors instead.
    """
    expired = EvaluationShard.objects.filter(
        state=ShardState.RUNNING, lease_until__lt=now, evaluation__state__in=ACTIVE
    )
    for shard in expired.filter(attempts__gte=MOST_ATTEMPTS).select_related("evaluation"):
        lost = f"given up after {shard.attempts} workers that did not come back; their log may say why"
        give_up(shard, lost, WORKER_LOST)
    return [*expired.values_list("pk", flat=True), *_collect_unqueued(now)]


def _collect_unqueued(now: datetime) -> list[int]:
    """Queued shards of evaluations that stand still while no worker anywhere is at work, or have for very long."""
    is_busy = EvaluationShard.objects.filter(state=ShardState.RUNNING, lease_until__gte=now).exists()
    quiet_since = now - (LONGEST_WAIT if is_busy else STANDSTILL)
    is_quiet = Q(heartbeat_at__lt=quiet_since) | Q(heartbeat_at=None, created_at__lt=quiet_since)
    quiet = list(Evaluation.objects.filter(is_quiet, state__in=ACTIVE).values_list("pk", flat=True))
    # The next look is after as long again, whether the messages arrive or not.
    Evaluation.objects.filter(pk__in=quiet).update(heartbeat_at=now)
    queued = EvaluationShard.objects.filter(evaluation__in=quiet, state=ShardState.QUEUED)
    return list(queued.values_list("pk", flat=True))


def give_up(shard: EvaluationShard, reason: str, kind: str = NOT_STARTED) -> bool:
    """End a shard that nobody can work on: its missing pairs become errors. False when another worker has it."""
    missing: list[Pair] = missing_pairs(shard, stored_pairs(shard.evaluation))
    error = str(clean_json(reason))[:LONGEST_ERROR]
    CaseResult.objects.bulk_create(
        [
            CaseResult(evaluation=shard.evaluation, case_id=case, repeat=repeat, error_kind=kind, error=error)
            for case, repeat in missing
        ],
        ignore_conflicts=True,
    )
    return _end(shard)
