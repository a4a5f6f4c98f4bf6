"""What beat does every few seconds: takes over work whose worker has died, and ends what nobody ended."""

from celery import shared_task
from django.conf import settings

from evolution.limits.granting import forget_abandoned
from evolution.loop.clock import database_time
from evolution.loop.evaluation import ACTIVE
from evolution.loop.shards import collect_abandoned
from evolution.loop.steps import conclude_evaluation, settle_step
from evolution.loop.storing import prune_receipts
from evolution.models import Evaluation, Step
from evolution.states import ShardState, StepState
from evolution.tasks.evaluations import send_tasks
from evolution.tasks.imports import remove_leftovers
from evolution.tasks.jobs import resume_lost_jobs

UNDONE = (ShardState.QUEUED, ShardState.RUNNING)


@shared_task(name="evolution.sweep")
def sweep() -> None:
    """Take over lost jobs and shards, end evaluations that are complete, and settle steps that are measured."""
    resume_lost_jobs()
    for evaluation_id, count in collect_abandoned(database_time()).items():
        send_tasks(evaluation_id, min(count, settings.EVALUATION_TASKS))
    for evaluation in Evaluation.objects.filter(state__in=ACTIVE).exclude(shards__state__in=UNDONE):
        conclude_evaluation(evaluation)
    for step in Step.objects.filter(state=StepState.EVALUATING):
        settle_step(step)
    prune_receipts()
    remove_leftovers()
    forget_abandoned()
