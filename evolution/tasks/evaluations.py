"""Work on evaluations by Celery: a task takes shards of an evaluation as long as there are any and it may.

Tasks take ids and end at once when the row is gone or there is nothing to do.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

from celery import shared_task
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db.models.functions import Now
from django.utils.translation import gettext as _

from evolution.adapters.chat import Role, build_model, count_places
from evolution.adapters.tool_access import build_tool_access
from evolution.errors import LoopError
from evolution.loop.batches import MOST_FAILED_STARTS, give_up_starts, work_batch
from evolution.loop.engine import Engine, never
from evolution.loop.evaluation import build_scorer, list_batch
from evolution.loop.kept_calls import Ledger
from evolution.loop.pairs import count_results
from evolution.loop.scoring import Scorer
from evolution.loop.shards import count_queued, has_work, is_held
from evolution.loop.steps import conclude_evaluation, settle_steps
from evolution.models import Evaluation, Job
from evolution.ports import NamedModel
from evolution.states import JobState
from evolution.tasks.sending import send_on_commit
from evolution.tasks.stopping import is_stopping
from harness_repo.runtime.access import ToolAccess

# A job that no worker has taken after so many seconds finds them all busy; one that is much older has other troubles.
BUSY_AFTER, BUSY_UNTIL = timedelta(seconds=1), timedelta(seconds=60)
# Seconds after which a start that failed is tried again, by whichever worker takes it.
START_PAUSE = 3


@shared_task(name="evolution.run_evaluation")
def run_evaluation(evaluation_id: int, failed_starts: int = 0) -> None:
    """Work on an evaluation and on those that it is compared with, until nothing of them is left to take.

    After EVALUATION_TASK_SECONDS, or when a person waits for a worker, another task is sent to go on. So it is where
    this machine lacks what is needed to start; `failed_starts` says how often that happened in a row.
    """
    evaluation = Evaluation.objects.filter(pk=evaluation_id).first()
    if evaluation is None or not (batch := list_batch(evaluation)):
        return
    engine = _work_on(batch) if has_work([one.pk for one in batch]) else None
    for one in batch:
        conclude_evaluation(one)
        if engine is not None and one.pk not in engine.obstacles:
            _go_on(one, engine)
    if engine is not None and engine.obstacles:
        _start_again(evaluation_id, batch, engine, failed_starts)


def _start_again(evaluation_id: int, batch: Sequence[Evaluation], engine: Engine, failed_starts: int) -> None:
    """Leave to another worker what can't be started here; end it when nobody else is at it and all have tried."""
    if all(is_held(pk) for pk in engine.obstacles):
        return
    if failed_starts < MOST_FAILED_STARTS:
        run_evaluation.apply_async((evaluation_id, failed_starts + 1), countdown=START_PAUSE)
        return
    give_up_starts(batch, engine)
    for one in batch:
        conclude_evaluation(one)


def _work_on(batch: Sequence[Evaluation]) -> Engine:
    engine = Engine(
        batch,
        _build_scorer,
        # Workers that began together do not pause together.
        seconds=settings.EVALUATION_TASK_SECONDS * random.uniform(0.8, 1.2),  # noqa: S311  no secret
        is_wanted_elsewhere=_has_waiting_job,
        is_stopping=is_stopping,
    )
    engine.work()
    return engine


def _go_on(evaluation: Evaluation, engine: Engine) -> None:
    """Send tasks for what is queued by now: what was left for others, or a round of retries for all workers."""
    most = 1 if engine.has_given_way else settings.EVALUATION_TASKS
    send_tasks(evaluation.pk, min(count_queued(evaluation.pk), most))


def perform_evaluation(
    evaluation: Evaluation,
    progress: Callable[[int, int], None] | None = None,
    is_stopping: Callable[[], bool] = never,
) -> None:
    """Do what all tasks of an evaluation do, in this process and beside any workers; commands use it.

    `progress` is told now and then how many of its pairs have a result, and how many there are. Once `is_stopping`,
    the rest is left to others. Raises LoopError when it is deleted meanwhile.
    """

    def report() -> None:
        if progress:
            progress(count_results(evaluation), evaluation.total)

    batch = list_batch(evaluation)
    work_batch(batch, _build_scorer, report, is_stopping)
    for one in {evaluation, *batch}:
        settle_steps(one)
    try:
        evaluation.refresh_from_db()
    except Evaluation.DoesNotExist as failure:
        raise LoopError(_("the evaluation was deleted meanwhile")) from failure


def _has_waiting_job() -> bool:
    """Whether a person waits for a worker."""
    waiting = Job.objects.filter(state=JobState.QUEUED)
    return waiting.filter(created_at__lt=Now() - BUSY_AFTER, created_at__gt=Now() - BUSY_UNTIL).exists()


def _build_scorer(evaluation: Evaluation) -> Scorer:
    """With the models that this evaluation is bound to, and no other: settings may have changed since.

    Answers that were given before need neither an agent's model nor a user.
    """
    ledger = Ledger(evaluation)

    def build(role: Role, name: str) -> NamedModel:
        return ledger.wrap(role, build_model(role, name))

    is_answered = evaluation.answers_from_id is not None
    policy = None if evaluation.runner or is_answered else build(Role.POLICY, evaluation.model)
    user = build(Role.USER, evaluation.user_model) if evaluation.user_model and not is_answered else None
    judge = build(Role.JUDGE, evaluation.judge_model)
    scorer = build_scorer(evaluation, policy, judge, user, _grant_access())
    return replace(scorer, ledger=ledger, cases_at_once=count_cases_at_once())


def count_cases_at_once() -> int:
    """So many that at an endpoint with a limit a call always waits for the place that becomes free.

    What they wait with costs next to nothing; with fewer, places stand empty while answers are worked on. Raises
    LoopError when the settings of endpoints can't be read.
    """
    places = max(count_places(Role.POLICY), count_places(Role.JUDGE))
    return max(int(settings.EVALUATION_CONCURRENCY), 5 * places // 2)


def _grant_access() -> ToolAccess:
    """What the installation grants to tools and agents; LoopError when its settings can't be read."""
    try:
        return build_tool_access()
    except ImproperlyConfigured as failure:
        raise LoopError(str(failure)) from failure


def enqueue_evaluation(evaluation: Evaluation) -> None:
    """Send tasks for what is queued of an evaluation once the transaction is committed."""
    most = min(count_queued(evaluation.pk), settings.EVALUATION_TASKS)
    send_on_commit(partial(send_tasks, evaluation.pk, most))


def send_tasks(evaluation_id: int, count: int) -> None:
    """Send so many tasks for an evaluation; as many workers can be at it at once."""
    for _number in range(count):
        run_evaluation.delay(evaluation_id)
