"""Work on evaluations by Celery: a shard per task. Tasks take ids and end at once when the row is gone or taken."""

from collections.abc import Callable
from functools import partial

from celery import shared_task
from django.db import transaction

from evolution.adapters.chat import Role, build_model
from evolution.errors import LoopError
from evolution.loop.evaluation import build_scorer
from evolution.loop.shards import claim_shard, give_up, work_evaluation, work_shard
from evolution.loop.steps import conclude_evaluation, settle_steps
from evolution.models import Evaluation
from evolution.states import ShardState
from harness_repo.errors import HarnessRepoError


@shared_task(name="evolution.run_shard")
def run_shard(shard_id: int) -> None:
    """Make the missing pairs of a shard; the task that makes the last one ends the evaluation."""
    shard = claim_shard(shard_id)
    if shard is None:
        return
    try:
        scorer = build_scorer(shard.evaluation, build_model(Role.POLICY), build_model(Role.JUDGE))
    except (LoopError, HarnessRepoError) as failure:
        # No other worker can do more: a repository or a setting is missing, and a resumed evaluation tries again.
        is_done = give_up(shard, str(failure))
    else:
        is_done = work_shard(shard, scorer)
    if is_done:
        conclude_evaluation(shard.evaluation)


def perform_evaluation(evaluation: Evaluation, progress: Callable[[int, int], None] | None = None) -> None:
    """Do what all tasks of an evaluation do, in this process and beside any workers; commands use it."""
    scorer = build_scorer(evaluation, build_model(Role.POLICY), build_model(Role.JUDGE))
    work_evaluation(evaluation, scorer, progress)
    settle_steps(evaluation)


def enqueue_evaluation(evaluation: Evaluation) -> None:
    """Send a task for every queued shard once the transaction is committed."""
    queued = evaluation.shards.filter(state=ShardState.QUEUED).order_by("number")
    for shard_id in queued.values_list("pk", flat=True):
        transaction.on_commit(partial(run_shard.delay, shard_id), robust=True)
