"""Inside an evaluation: which of its (case, repeat) pairs have a result. The database looks, whatever the size.

Errors are results here; what becomes of them is `evaluation`'s to decide.
"""

from collections.abc import Collection, Iterable

from django.db import connection
from django.db.models import Count

from evolution.models import CaseResult, Evaluation, EvaluationShard
from evolution.states import ShardState

Pair = tuple[int, int]

# Rows that are read or written at once.
BATCH = 1000

# The pairs of an evaluation's shards that have no result, each with its shard. Both sides are computed first, so that
# they are compared by hashing: what the planner takes for small would be searched once for each pair.
_MISSING = """
    WITH listed AS MATERIALIZED (
        SELECT shard.id AS shard_id, (pair->>0)::bigint AS case_id, (pair->>1)::int AS repeat
        FROM evolution_evaluationshard shard, jsonb_array_elements(shard.pairs) AS pair
        WHERE shard.evaluation_id = %(evaluation)s AND shard.state <> 'running'
    ), missing AS MATERIALIZED (
        SELECT case_id, repeat FROM listed EXCEPT
        SELECT case_id, repeat FROM evolution_caseresult WHERE evaluation_id = %(evaluation)s
    )
"""
_LIST_MISSING = f"{_MISSING} SELECT case_id, repeat FROM missing"  # noqa: S608  the same
_QUEUE_MISSING = f"""
    {_MISSING}, incomplete AS MATERIALIZED (
        SELECT shard_id FROM listed WHERE (case_id, repeat) IN (SELECT case_id, repeat FROM missing)
    )
    UPDATE evolution_evaluationshard SET state = 'queued', holder = '', lease_until = NULL, attempts = 0
    WHERE id IN (SELECT shard_id FROM incomplete) AND state <> 'running'
"""  # noqa: S608  no value is put in
# A shard remembers how often each of the pairs that failed was tried.
_QUEUE_FAILED = """
    WITH failed AS MATERIALIZED (
        SELECT id, case_id, repeat, attempts FROM evolution_caseresult
        WHERE evaluation_id = %(evaluation)s AND error_kind <> ''
          AND (cardinality(%(kinds)s::text[]) = 0 OR error_kind = ANY(%(kinds)s::text[]))
    ), listed AS MATERIALIZED (
        SELECT shard.id AS shard_id, pair, place, (pair->>0)::bigint AS case_id, (pair->>1)::int AS repeat
        FROM evolution_evaluationshard shard,
             jsonb_array_elements(shard.pairs) WITH ORDINALITY AS element (pair, place)
        WHERE shard.evaluation_id = %(evaluation)s AND shard.state <> 'running'
    ), rewritten AS MATERIALIZED (
        SELECT shard_id, jsonb_agg(
            CASE WHEN attempts IS NULL THEN pair ELSE jsonb_build_array(pair->0, pair->1, attempts) END
            ORDER BY place
        ) AS pairs
        FROM listed LEFT JOIN failed USING (case_id, repeat)
        GROUP BY shard_id HAVING count(attempts) > 0
    ), queued AS (
        UPDATE evolution_evaluationshard shard
        SET state = 'queued', holder = '', lease_until = NULL, attempts = 0, pairs = rewritten.pairs
        FROM rewritten WHERE shard.id = rewritten.shard_id AND shard.state <> 'running'
        RETURNING shard.id AS shard_id
    )
    SELECT failed.id FROM failed JOIN listed USING (case_id, repeat) JOIN queued USING (shard_id)
"""


def requeue_failed(evaluation: Evaluation, kinds: Iterable[str] = ()) -> int:
    """Throw away the results that are errors of these kinds, or of any, and queue their shards; returns how many.

    Needs a transaction. Shards that somebody works on are left alone, and their errors stay.
    """
    wanted = list(kinds)
    failed = evaluation.results.exclude(error_kind="")
    if wanted:
        failed = failed.filter(error_kind__in=wanted)
    if not failed.exists():
        return 0
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE_FAILED, {"evaluation": evaluation.pk, "kinds": wanted})
        thrown_away = [pk for (pk,) in cursor.fetchall()]
    for start in range(0, len(thrown_away), BATCH):
        evaluation.results.filter(pk__in=thrown_away[start : start + BATCH]).delete()
    return len(thrown_away)


def requeue_incomplete(evaluation: Evaluation) -> int:
    """Queue every shard that lacks a result and that nobody works on; returns how many."""
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE_MISSING, {"evaluation": evaluation.pk})
        return int(cursor.rowcount)


def fill_missing(evaluation: Evaluation, kind: str, error: str) -> int:
    """Give every pair that has no result, and that nobody works on, this error; end its shards. Returns the pairs.

    Safe beside workers: what they store first stays.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LIST_MISSING, {"evaluation": evaluation.pk})
        missing: list[Pair] = cursor.fetchall()
    for start in range(0, len(missing), BATCH):
        _insert_errors(evaluation, missing[start : start + BATCH], kind, error)
    evaluation.shards.filter(state=ShardState.QUEUED).update(state=ShardState.DONE, lease_until=None)
    return len(missing)


def fill_shard(shard: EvaluationShard, kind: str, error: str) -> None:
    """Give the pairs of one shard that have no result this error."""
    done = stored_pairs(shard.evaluation, {pair[0] for pair in shard.pairs})
    _insert_errors(shard.evaluation, missing_pairs(shard, done), kind, error)


def _insert_errors(evaluation: Evaluation, pairs: Iterable[Pair], kind: str, error: str) -> None:
    rows = (
        CaseResult(evaluation=evaluation, case_id=case, repeat=repeat, error_kind=kind, error=error)
        for case, repeat in pairs
    )
    CaseResult.objects.bulk_create(rows, ignore_conflicts=True)


def stored_pairs(evaluation: Evaluation, cases: Collection[int] | None = None) -> set[Pair]:
    """Return the (case id, repeat) pairs that have a result: of these cases, or of all."""
    results = evaluation.results.all() if cases is None else evaluation.results.filter(case__in=cases)
    return set(results.values_list("case_id", "repeat"))


def missing_pairs(shard: EvaluationShard, done: Collection[Pair]) -> list[Pair]:
    """Return the shard's pairs that are not among those done, in order."""
    return [(case, repeat) for case, repeat, *_ in shard.pairs if (case, repeat) not in done]


def count_results(evaluation: Evaluation) -> int:
    """How many pairs have a result."""
    return int(evaluation.results.aggregate(count=Count("pk"))["count"])
