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
from harness_repo.runtime.faults import Fault


@transaction.atomic
def start_evaluation(
    actor: Actor,
    harness: Harness,
    commit: str,
    dataset_version: DatasetVersion | None = None,
    *,
    splits: Iterable[str] = loop.DEFAULT_SPLITS,
    repeats: int = 1,
    faults: Iterable[Fault] = (),
    enqueue: bool = True,
) -> Evaluation:
    """Start measuring a commit (or branch, or tag) on a dataset version, by default the newest one.

    `faults` strike tool calls in every case. An identical evaluation that runs or is finished is returned instead.
    With `enqueue` false the caller performs it.
    """
    actor.require(Role.DEVELOPER)
    version = dataset_version or loop.newest_version(harness)
    evaluation = loop.create_evaluation(
        actor,
        harness,
        commit,
        version,
        **name_models(harness, version, splits),
        splits=splits,
        repeats=repeats,
        faults=faults,
    )
    if enqueue:
        enqueue_evaluation(evaluation)
    return evaluation


def name_models(
    harness: Harness, version: DatasetVersion, splits: Iterable[str] = loop.DEFAULT_SPLITS
) -> dict[str, str]:
    """The names of the models that an evaluation asks, "" for one it does not need; LoopError where one is not set.

    Another agent than our runtime has models of its own, and only conversations need a user.
    """
    needs_user = loop.has_conversations(version, splits)
    return {
        "model": "" if harness.runner else chat.build_model(chat.Role.POLICY).name,
        "judge_model": chat.build_model(chat.Role.JUDGE).name,
        "user_model": chat.build_model(chat.Role.USER).name if needs_user else "",
    }


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
