"""What people do with evaluations: start, cancel, resume. The work itself is done by Celery's workers."""

from collections.abc import Iterable

from django.db import transaction

from evolution.actors import Actor, Role
from evolution.adapters import chat
from evolution.loop import evaluation as loop
from evolution.loop.locks import lock_harness
from evolution.loop.steps import settle_steps
from evolution.models import DatasetVersion, Evaluation, Harness
from evolution.tasks.evaluations import enqueue_evaluation


@transaction.atomic
def start_evaluation(
    actor: Actor,
    harness: Harness,
    commit: str,
    dataset_version: DatasetVersion | None = None,
    *,
    splits: Iterable[str] = loop.DEFAULT_SPLITS,
    repeats: int = 1,
    enqueue: bool = True,
) -> Evaluation:
    """Start measuring a commit (or branch, or tag) on a dataset version, by default the newest one.

    An identical evaluation that runs or is finished is returned instead. With `enqueue` false the caller performs it.
    """
    actor.require(Role.DEVELOPER)
    evaluation = loop.create_evaluation(
        actor,
        harness,
        commit,
        dataset_version or loop.newest_version(harness),
        model=chat.build_model(chat.Role.POLICY).name,
        judge_model=chat.build_model(chat.Role.JUDGE).name,
        splits=splits,
        repeats=repeats,
    )
    if enqueue:
        enqueue_evaluation(evaluation)
    return evaluation


@transaction.atomic
def cancel_evaluation(actor: Actor, evaluation: Evaluation) -> None:
    """Stop measuring; what is measured stays. A step that waits for it is ready again."""
    actor.require(Role.DEVELOPER)
    lock_harness(evaluation.harness)
    loop.cancel_evaluation(actor, evaluation)
    settle_steps(evaluation)


@transaction.atomic
def resume_evaluation(actor: Actor, evaluation: Evaluation, *, enqueue: bool = True) -> int:
    """Measure what has no score: errors again, and what was not reached. Returns how many pairs that is.

    An undecided step that rests on the evaluation waits for it again.
    """
    actor.require(Role.DEVELOPER)
    lock_harness(evaluation.harness)
    missing = loop.resume_evaluation(actor, evaluation)
    settle_steps(evaluation)
    if enqueue:
        enqueue_evaluation(evaluation)
    return missing
