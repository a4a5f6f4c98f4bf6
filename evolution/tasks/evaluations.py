"""Work on evaluations by Celery: a shard per task. Tasks take ids and end at once when the row is gone or taken."""

from collections.abc import Callable
from functools import partial

from celery import shared_task
from django.core.exceptions import ImproperlyConfigured
from django.db import transaction

from evolution.adapters.chat import Role, build_model
from evolution.adapters.tool_access import build_tool_access
from evolution.errors import LoopError
from evolution.loop.evaluation import build_scorer
from evolution.loop.scoring import Scorer
from evolution.loop.shards import claim_shard, give_up, work_evaluation, work_shard
from evolution.loop.steps import conclude_evaluation, settle_steps
from evolution.models import Evaluation
from evolution.states import ShardState
from harness_repo.git.errors import HarnessRepoError
from harness_repo.runtime.access import ToolAccess


@shared_task(name="evolution.run_shard")
def run_shard(shard_id: int) -> None:
    """Make the missing pairs of a shard; the task that makes the last one ends the evaluation."""
    shard = claim_shard(shard_id)
    if shard is None:
        return
    try:
        scorer = _build_scorer(shard.evaluation)
    except (LoopError, HarnessRepoError) as failure:
        # No other worker can do more: a repository or a setting is missing, and a resumed evaluation tries again.
        is_done = give_up(shard, str(failure))
    else:
        is_done = work_shard(shard, scorer)
    if is_done:
        conclude_evaluation(shard.evaluation)


def perform_evaluation(evaluation: Evaluation, progress: Callable[[int, int], None] | None = None) -> None:
    """Do what all tasks of an evaluation do, in this process and beside any workers; commands use it."""
    work_evaluation(evaluation, _build_scorer(evaluation), progress)
    settle_steps(evaluation)


def _build_scorer(evaluation: Evaluation) -> Scorer:
    """With the models that this evaluation is bound to, and no other: settings may have changed since."""
    policy = None if evaluation.runner else build_model(Role.POLICY, evaluation.model)
    user = build_model(Role.USER, evaluation.user_model) if evaluation.user_model else None
    judge = build_model(Role.JUDGE, evaluation.judge_model)
    return build_scorer(evaluation, policy, judge, user, _grant_access())


def _grant_access() -> ToolAccess:
    """What the installation grants to tools and agents; LoopError when its settings can't be read."""
    try:
        return build_tool_access()
    except ImproperlyConfigured as failure:
        raise LoopError(str(failure)) from failure


def enqueue_evaluation(evaluation: Evaluation) -> None:
    """Send a task for every queued shard once the transaction is committed."""
    queued = evaluation.shards.filter(state=ShardState.QUEUED).order_by("number")
    for shard_id in queued.values_list("pk", flat=True):
        transaction.on_commit(partial(run_shard.delay, shard_id), robust=True)
