"""Inside an evaluation: shards of its pairs are worked on under a lease, by one worker at a time.

A worker that dies loses what was in flight: its lease ends, and another one makes only the pairs that are missing.
All times are the database's, since machines differ in theirs.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Max, Q, QuerySet
from django.db.models.functions import Greatest, Now

from evolution.actors import SYSTEM
from evolution.errors import StaleState
from evolution.limits.holders import is_gone
from evolution.loop.clock import database_time
from evolution.loop.evaluation import ACTIVE, STANDSTILL
from evolution.loop.outcomes import NOT_STARTED, WORKER_LOST
from evolution.loop.pairs import Pair, fill_missing, fill_shard, stored_pairs
from evolution.models import DatasetCase, Evaluation, EvaluationShard
from evolution.states import EvaluationState, ShardState
from evolution.transitions import move

# A shard whose workers died or failed so often is ended with errors; a case may be what kills them.
MOST_ATTEMPTS = 5
# A shard that so many workers died of is worked on alone: theirs die with it no more. After one more death its pairs
# are, each by itself.
ALONE_AFTER = 2
MOST_DEATHS = 2**15 - 1
# An evaluation that stands still is queued again: after so long, if workers are busy with others.
LONGEST_WAIT = timedelta(minutes=10)


@dataclass(eq=False)
class HeldShard:
    """A shard that this worker holds, and what it has to do for it."""

    pk: int
    evaluation_id: int
    number: int
    # pairs without a result, each with how often it has been tried
    missing: dict[Pair, int]
    cases: dict[int, DatasetCase] = field(repr=False)
    # nothing else is to be taken while it is worked on
    is_alone: bool = False


# The pk, number and pairs of a shard.
_Claimed = tuple[int, int, list[list[int]]]

# Who holds a shard that is taken over has died; a claim of the holder's own was made when a connection broke.
_PICK = """
    SELECT shard.id, shard.state = 'running' AND shard.holder = %(holder)s AS is_own, counted.deaths
    FROM evolution_evaluationshard shard
    JOIN evolution_evaluation evaluation ON evaluation.id = shard.evaluation_id
    CROSS JOIN LATERAL (
        SELECT shard.deaths + (shard.state = 'running' AND shard.holder <> %(holder)s)::int AS deaths
    ) counted
    WHERE shard.evaluation_id = %(evaluation)s AND evaluation.stopped_by = ''
      AND evaluation.state IN ('queued', 'running')
      AND (shard.state = 'queued' AND shard.attempts < %(most_attempts)s
           OR shard.state = 'running' AND shard.holder = %(holder)s AND shard.id <> ALL(%(held)s)
           OR shard.state = 'running' AND shard.attempts < %(most_attempts)s
           AND shard.lease_until < clock_timestamp()
           AND pg_postmaster_start_time() < clock_timestamp() - %(grace)s)
      AND counted.deaths BETWEEN %(least_deaths)s AND %(most_deaths)s
      AND (%(numbers)s::int[] IS NULL OR shard.number = ANY(%(numbers)s::int[]))
"""
_CLAIM = f"""
    WITH picked AS MATERIALIZED (
        {_PICK} ORDER BY shard.number LIMIT %(most)s FOR UPDATE OF shard SKIP LOCKED
    )
    UPDATE evolution_evaluationshard shard
    SET state = 'running', holder = %(holder)s, attempts = attempts + (NOT picked.is_own)::int,
        deaths = picked.deaths, lease_until = clock_timestamp() + %(lease)s
    FROM picked WHERE shard.id = picked.id
    RETURNING shard.number, shard.id, shard.pairs
"""  # noqa: S608  no value is put in
_PICK_TO_SPLIT = f"""
    {_PICK} AND jsonb_array_length(shard.pairs) > 1 FOR UPDATE OF shard SKIP LOCKED
"""


def claim_together(
    evaluations: Sequence[Evaluation], most: int, holder: str, held: Collection[int]
) -> list[HeldShard]:
    """Take up to `most` shards of the first evaluation, and those with the same numbers of the others.

    What is compared has the same cases in shards of the same number: calls that are the same on both sides are asked
    in one process then, and made once. All workers have to take them in the same order.
    """
    with transaction.atomic():
        claimed = claim_shards(evaluations[0], most, holder, held)
        numbers = [shard.number for shard in claimed if not shard.is_alone]
        for other in evaluations[1:] if numbers else ():
            claimed += claim_shards(other, most, holder, held, numbers)
    return claimed


def claim_shards(
    evaluation: Evaluation,
    most: int,
    holder: str,
    held: Collection[int] = (),
    numbers: Sequence[int] | None = None,
) -> list[HeldShard]:
    """Take up to `most` shards of an evaluation that are queued or whose lease has ended, in order.

    Nobody waits for shards that others are taking at this moment. Shards that are the holder's and not among those
    it knows to hold were taken when a connection broke, and are taken now. One that several workers have died of is
    taken when there are no others, by a holder that holds nothing, and alone. With `numbers` only those are taken.
    """
    values: dict[str, Any] = {
        "evaluation": evaluation.pk,
        "numbers": None if numbers is None else list(numbers),
        "most": most,
        "holder": holder,
        "held": list(held),
        "lease": _lease(),
        "most_attempts": MOST_ATTEMPTS,
        "grace": grace(),
        "least_deaths": 0,
        "most_deaths": ALONE_AFTER - 1,
    }
    claimed = _claim(values)
    if is_alone := not claimed and not held and numbers is None:
        values |= {"most": 1, "least_deaths": ALONE_AFTER, "most_deaths": MOST_DEATHS}
        _split_deadly(evaluation, {**values, "least_deaths": ALONE_AFTER + 1})
        claimed = _claim(values)
    if claimed:
        mark_running(evaluation)
    return _load(evaluation, claimed, is_alone=is_alone)


def _claim(values: Mapping[str, Any]) -> list[_Claimed]:
    """Shards with their numbers and pairs, in order."""
    with connection.cursor() as cursor:
        cursor.execute(_CLAIM, values)
        return [(pk, number, json.loads(pairs)) for number, pk, pairs in sorted(cursor.fetchall())]


def _split_deadly(evaluation: Evaluation, values: Mapping[str, Any]) -> None:
    """Deal the pairs of shards that were deadly alone out to shards of their own: one of the pairs is."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_PICK_TO_SPLIT, values)
        deaths = {pk: count for pk, _, count in cursor.fetchall()}
        if not deaths:
            return
        # Two that split at once would give the same numbers.
        Evaluation.objects.select_for_update(no_key=True).get(pk=evaluation.pk)
        for shard in EvaluationShard.objects.filter(pk__in=deaths):
            _split(shard, deaths[shard.pk])


def _split(shard: EvaluationShard, deaths: int) -> None:
    done = stored_pairs(shard.evaluation, {pair[0] for pair in shard.pairs})
    last = shard.evaluation.shards.aggregate(last=Max("number"))["last"]
    alone = [pair for pair in shard.pairs if (pair[0], pair[1]) not in done]
    shard.evaluation.shards.bulk_create(
        EvaluationShard(
            evaluation_id=shard.evaluation_id,
            number=number,
            pairs=[pair],
            attempts=shard.attempts,
            deaths=deaths,
        )
        for number, pair in enumerate(alone, last + 1)
    )
    shard.pairs = [pair for pair in shard.pairs if pair not in alone]
    shard.state, shard.holder, shard.lease_until = ShardState.DONE, "", None
    shard.save(update_fields=["pairs", "state", "holder", "lease_until"])


def _load(evaluation: Evaluation, claimed: Sequence[_Claimed], *, is_alone: bool) -> list[HeldShard]:
    """What is to be done for shards of an evaluation."""
    if not claimed:
        return []
    done = stored_pairs(evaluation, {pair[0] for *_, pairs in claimed for pair in pairs})
    missing = [_missing(pairs, done) for *_, pairs in claimed]
    cases = DatasetCase.objects.in_bulk({case for tries in missing for case, _ in tries})
    return [
        HeldShard(pk, evaluation.pk, number, tries, {case: cases[case] for case, _ in tries}, is_alone)
        for (pk, number, _), tries in zip(claimed, missing, strict=True)
    ]


def _missing(pairs: list[list[int]], done: Collection[Pair]) -> dict[Pair, int]:
    """The pairs without a result; a third number says how often one was tried before."""
    tries = {(case, repeat): sum(before) for case, repeat, *before in pairs}
    return {pair: tried for pair, tried in tries.items() if pair not in done}


def mark_running(evaluation: Evaluation) -> None:
    """Say that an evaluation is worked on."""
    if evaluation.state != EvaluationState.QUEUED:
        return
    now = database_time()
    try:
        started = evaluation.started_at or now
        move(evaluation, EvaluationState.RUNNING, SYSTEM, started_at=started, heartbeat_at=now)
    except StaleState:
        # Another worker was quicker, or it is gone.
        if (now_there := Evaluation.objects.filter(pk=evaluation.pk).first()) is not None:
            evaluation.state, evaluation.started_at = now_there.state, now_there.started_at


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
    _give_up(expired.filter(attempts__gte=MOST_ATTEMPTS))
    give_up_failing()
    return Counter(expired.values_list("evaluation", flat=True)) + _collect_unqueued(now)


def _expire_gone() -> None:
    """End the leases of workers that are known to be gone, which they were to run out anyway."""
    held = EvaluationShard.objects.filter(state=ShardState.RUNNING)
    gone = [holder for holder in held.values_list("holder", flat=True).distinct() if is_gone(holder)]
    if gone:
        held.filter(holder__in=gone).update(lease_until=Now() - timedelta(seconds=1))


def give_up_failing() -> None:
    """End the shards whose workers have failed too often: what made them fail would do so for ever."""
    _give_up(
        EvaluationShard.objects.filter(
            state=ShardState.QUEUED, attempts__gte=MOST_ATTEMPTS, evaluation__state__in=ACTIVE
        )
    )


def _give_up(shards: QuerySet[EvaluationShard]) -> None:
    """End shards that nobody brings to an end: their missing pairs become errors."""
    for shard in shards.select_related("evaluation"):
        error = f"given up after {shard.attempts} workers that died or failed; their log may say why"
        fill_shard(shard, WORKER_LOST, error)
        same = EvaluationShard.objects.filter(pk=shard.pk, state=shard.state, holder=shard.holder)
        same.update(state=ShardState.DONE, lease_until=None)


def give_up_start(evaluation: Evaluation, obstacle: str) -> None:
    """End with errors what can't be started here, unless others are at it, who go on."""
    if not is_held(evaluation.pk):
        fill_missing(evaluation, NOT_STARTED, obstacle)


def is_held(evaluation_id: int) -> bool:
    """Whether somebody works on an evaluation."""
    held = EvaluationShard.objects.filter(evaluation=evaluation_id, state=ShardState.RUNNING)
    return held.filter(lease_until__gt=Now()).exists()


def _collect_unqueued(now: datetime) -> Counter[int]:
    """Evaluations that stand still, with queued shards, while no worker anywhere is at work, or have for very long."""
    is_busy = EvaluationShard.objects.filter(state=ShardState.RUNNING, lease_until__gte=now).exists()
    quiet_since = now - (LONGEST_WAIT if is_busy else STANDSTILL)
    # Nothing is the least of these.
    last = Greatest("created_at", "queued_at", "heartbeat_at", "sent_at")
    active = Evaluation.objects.filter(state__in=ACTIVE).alias(last=last)
    quiet = list(active.filter(last__lt=quiet_since).values_list("pk", flat=True))
    # The next look is after as long again, whether the messages arrive or not.
    Evaluation.objects.filter(pk__in=quiet).update(sent_at=now)
    return Counter({pk: count_queued(pk) for pk in quiet})


def _free() -> QuerySet[EvaluationShard]:
    """Shards that a worker may take: queued ones, and those whose holder died."""
    is_free = Q(state=ShardState.QUEUED) | Q(state=ShardState.RUNNING, lease_until__lt=Now())
    return EvaluationShard.objects.filter(is_free, attempts__lt=MOST_ATTEMPTS)


def has_work(evaluation_ids: Collection[int]) -> bool:
    """Whether a worker that comes now would find anything to take."""
    return _free().filter(evaluation__in=evaluation_ids).exists()


def count_queued(evaluation_id: int) -> int:
    """How many shards of an evaluation wait for a worker; none of one that is not to be worked on."""
    return _free().filter(evaluation=evaluation_id, evaluation__state__in=ACTIVE).count()
