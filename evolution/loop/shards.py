"""Inside an evaluation: shards of its pairs are worked on under a lease, by one worker at a time.

A worker that dies loses what was in flight: its lease ends, and another one makes only the pairs that are missing.
All times are the database's, since machines differ in theirs.
"""

import contextlib
import json
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evolution.actors import SYSTEM
from evolution.errors import StaleState
from evolution.limits.holders import is_gone, name_process
from evolution.loop.evaluation import ACTIVE, STANDSTILL
from evolution.loop.outcomes import WORKER_LOST
from evolution.loop.pairs import Pair, fill_shard, stored_pairs
from evolution.models import DatasetCase, Evaluation, EvaluationShard
from evolution.states import EvaluationState, ShardState
from evolution.transitions import move

# A shard whose workers died so often is ended with errors; a case may be what kills them.
MOST_ATTEMPTS = 5
# An evaluation that stands still is queued again: after so long, if workers are busy with others.
LONGEST_WAIT = timedelta(minutes=10)


@dataclass(eq=False)
class HeldShard:
    """A shard that this worker holds, and what it has to do for it."""

    pk: int
    evaluation_id: int
    # pairs without a result, each with how often it has been tried
    missing: dict[Pair, int]
    cases: dict[int, DatasetCase] = field(repr=False)


def name_holder() -> str:
    """A name that no other worker has, nor this one later."""
    return name_process()


_CLAIM = """
    WITH picked AS MATERIALIZED (
        SELECT shard.id FROM evolution_evaluationshard shard
        JOIN evolution_evaluation evaluation ON evaluation.id = shard.evaluation_id
        WHERE shard.evaluation_id = %(evaluation)s AND evaluation.stopped_by = ''
          AND evaluation.state IN ('queued', 'running')
          AND (shard.state = 'queued'
               OR shard.state = 'running' AND shard.holder = %(holder)s AND shard.id <> ALL(%(held)s)
               OR shard.state = 'running' AND shard.attempts < %(most_attempts)s
               AND shard.lease_until < clock_timestamp()
               AND pg_postmaster_start_time() < clock_timestamp() - %(grace)s)
        ORDER BY shard.number LIMIT %(most)s FOR UPDATE OF shard SKIP LOCKED
    )
    UPDATE evolution_evaluationshard shard
    SET state = 'running', holder = %(holder)s, attempts = attempts + 1,
        lease_until = clock_timestamp() + %(lease)s
    FROM picked WHERE shard.id = picked.id
    RETURNING shard.number, shard.id, shard.pairs
"""


def claim_shards(
    evaluation: Evaluation, most: int, holder: str, held: Collection[int] = ()
) -> list[HeldShard]:
    """Take up to `most` shards of an evaluation that are queued or whose lease has ended, in order.

    Nobody waits for shards that others are taking at this moment. Shards that are the holder's and not among those
    it knows to hold were taken when a connection broke, and are taken now.
    """
    values: dict[str, Any] = {
        "evaluation": evaluation.pk,
        "most": most,
        "holder": holder,
        "held": list(held),
        "lease": _lease(),
        "most_attempts": MOST_ATTEMPTS,
        "grace": grace(),
    }
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        claimed = [(pk, json.loads(pairs)) for _, pk, pairs in sorted(cursor.fetchall())]
    if claimed:
        mark_running(evaluation)
    return _load(evaluation, claimed)


def _load(evaluation: Evaluation, claimed: Sequence[tuple[int, list[list[int]]]]) -> list[HeldShard]:
    """What is to be done for shards of an evaluation."""
    if not claimed:
        return []
    done = stored_pairs(evaluation, {pair[0] for _, pairs in claimed for pair in pairs})
    missing = [_missing(pairs, done) for _, pairs in claimed]
    cases = DatasetCase.objects.in_bulk({case for tries in missing for case, _ in tries})
    return [
        HeldShard(pk, evaluation.pk, tries, {case: cases[case] for case, _ in tries})
        for (pk, _), tries in zip(claimed, missing, strict=True)
    ]


def _missing(pairs: list[list[int]], done: Collection[Pair]) -> dict[Pair, int]:
    """The pairs without a result; a third number says how often one was tried before."""
    tries = {(case, repeat): sum(before) for case, repeat, *before in pairs}
    return {pair: tried for pair, tried in tries.items() if pair not in done}


def mark_running(evaluation: Evaluation) -> None:
    """Say that an evaluation is worked on."""
    now = timezone.now()
    with contextlib.suppress(StaleState):
        if evaluation.state == EvaluationState.QUEUED:
            started = evaluation.started_at or now
            move(evaluation, EvaluationState.RUNNING, SYSTEM, started_at=started, heartbeat_at=now)


def renew_leases(shards: Collection[int], holder: str) -> set[int]:
    """Prolong the leases of those shards that are still this holder's, and return them."""
    with transaction.atomic():
        # In one order, as everybody: two that lock each other's rows would both wait.
        held = list(_held(shards, holder).order_by("pk").select_for_update().values_list("pk", flat=True))
        EvaluationShard.objects.filter(pk__in=held).update(lease_until=Now() + _lease())
    return set(held)


def release_shards(shards: Collection[int], holder: str, *, given_back: int = 0) -> None:
    """Let the next worker have them without waiting for the lease to end."""
    _held(shards, holder).update(
        state=ShardState.QUEUED, holder="", lease_until=None, attempts=F("attempts") - given_back
    )


def _held(shards: Collection[int], holder: str) -> QuerySet[EvaluationShard]:
    return EvaluationShard.objects.filter(pk__in=shards, holder=holder, state=ShardState.RUNNING)


def grace() -> timedelta:
    """How long leases that ended while the database was away are respected: time to renew them once it is back."""
    return _lease()


def _is_database_settled() -> bool:
    """Whether all who hold a lease have had the time to renew it since the database was started."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_postmaster_start_time() < clock_timestamp() - make_interval(secs => %s)",
            [grace().total_seconds()],
        )
        return bool(cursor.fetchone()[0])


def _lease() -> timedelta:
    return timedelta(seconds=settings.EVALUATION_LEASE_SECONDS)


def collect_abandoned(now: datetime) -> Counter[int]:
    """Evaluations that want a worker and have none, each with the shards that wait for one.

    The lease of a shard has ended, or the messages that queued the evaluation are lost. Shards that have been tried
    too often are ended with errors instead.
    """
    if not _is_database_settled():
        return Counter()
    _expire_gone()
    expired = EvaluationShard.objects.filter(
        state=ShardState.RUNNING, lease_until__lt=now, evaluation__state__in=ACTIVE
    )
    for shard in expired.filter(attempts__gte=MOST_ATTEMPTS).select_related("evaluation"):
        give_up(shard)
    return Counter(expired.values_list("evaluation", flat=True)) + _collect_unqueued(now)


def _expire_gone() -> None:
    """End the leases of workers that are known to be gone, which they were to run out anyway."""
    held = EvaluationShard.objects.filter(state=ShardState.RUNNING)
    gone = [holder for holder in held.values_list("holder", flat=True).distinct() if is_gone(holder)]
    if gone:
        held.filter(holder__in=gone).update(lease_until=Now() - timedelta(seconds=1))


def give_up(shard: EvaluationShard) -> None:
    """End a shard that nobody comes back from: its missing pairs become errors."""
    error = f"given up after {shard.attempts} workers that did not come back; their log may say why"
    fill_shard(shard, WORKER_LOST, error)
    _held([shard.pk], shard.holder).update(state=ShardState.DONE, lease_until=None)


def _collect_unqueued(now: datetime) -> Counter[int]:
    """Evaluations that stand still, with queued shards, while no worker anywhere is at work, or have for very long."""
    is_busy = EvaluationShard.objects.filter(state=ShardState.RUNNING, lease_until__gte=now).exists()
    quiet_since = now - (LONGEST_WAIT if is_busy else STANDSTILL)
    is_quiet = Q(heartbeat_at__lt=quiet_since) | Q(heartbeat_at=None, created_at__lt=quiet_since)
    quiet = list(Evaluation.objects.filter(is_quiet, state__in=ACTIVE).values_list("pk", flat=True))
    # The next look is after as long again, whether the messages arrive or not.
    Evaluation.objects.filter(pk__in=quiet).update(heartbeat_at=now)
    return Counter({pk: count_queued(pk) for pk in quiet})


def has_work(evaluation_ids: Collection[int]) -> bool:
    """Whether a worker that comes now would find anything to take."""
    is_free = Q(state=ShardState.QUEUED) | Q(state=ShardState.RUNNING, lease_until__lt=Now())
    return EvaluationShard.objects.filter(is_free, evaluation__in=evaluation_ids).exists()


def count_queued(evaluation_id: int) -> int:
    """How many shards of an evaluation wait for a worker; none of one that is not to be worked on."""
    queued = EvaluationShard.objects.filter(evaluation=evaluation_id, state=ShardState.QUEUED)
    return queued.filter(evaluation__state__in=ACTIVE).count()
