"""What people do with evaluations: start, cancel, resume. The work itself is done by Celery's workers."""

from collections.abc import Iterable, Mapping
from typing import Any, TypedDict, Unpack

from django.db import transaction

from evolution.actors import Actor, Role
from evolution.adapters import chat
from evolution.loop import evaluation as loop
from evolution.loop.locks import lock_harness
from evolution.loop.plans import DEFAULT_SPLITS, Asked, Options, has_conversations
from evolution.loop.rejudging import create_rejudgement
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
    is_fresh: bool = False,
    base: str = "",
    enqueue: bool = True,
    **options: Unpack[Options],
) -> Evaluation:
    """Start measuring a commit (or branch, or tag) on a dataset version, by default the newest one.

    An identical evaluation that runs or is finished is returned instead, unless `is_fresh`. What is missing of
    `base`, a commit or ref to compare with, is measured beside it under a budget of its own; what there is of it
    is taken, also with `is_fresh`, which is the candidate's alone. With `enqueue` false the caller performs it.
    """
    actor.require(Role.DEVELOPER)
    version = dataset_version or loop.newest_version(harness)
    asked: Asked = {**name_models(harness, version, options.get("splits", DEFAULT_SPLITS)), **options}
    compared = _start_base(actor, harness, base, version, asked) if base else None
    started = loop.create_evaluation(
        actor, harness, commit, version, base=compared, is_fresh=is_fresh, **asked
    )
    for evaluation in {started, compared or started} if enqueue else ():
        enqueue_evaluation(evaluation)
    return started


def _start_base(
    actor: Actor, harness: Harness, base: str, version: DatasetVersion, asked: Asked
) -> Evaluation:
    compared = loop.create_evaluation(actor, harness, base, version, resumes=True, **asked)
    # Steps that rest on it wait for it again.
    settle_steps(compared)
    return compared


class Models(TypedDict):
    """The names of the models that an evaluation asks, "" for one it does not need."""

    model: str
    judge_model: str
    user_model: str


def name_models(harness: Harness, version: DatasetVersion, splits: Iterable[str] = DEFAULT_SPLITS) -> Models:
    """The models that are set now; LoopError where one is not.

    Another agent than our runtime has models of its own, and only conversations need a user.
    """
    needs_user = has_conversations(version, splits)
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
def resume_evaluation(
    actor: Actor,
    evaluation: Evaluation,
    *,
    budget: Mapping[str, Any] | None = None,
    enqueue: bool = True,
) -> int:
    """Measure what has no score: errors again, and what was not reached. Returns how many pairs that is.

    With `budget`, which counts from the evaluation's beginning on, in place of the one that it has.
    An undecided step that rests on the evaluation waits for it again.
    """
    actor.require(Role.DEVELOPER)
    lock_harness(evaluation.harness)
    missing = loop.resume_evaluation(actor, evaluation, budget)
    settle_steps(evaluation)
    if enqueue:
        enqueue_evaluation(evaluation)
    return missing


@transaction.atomic
def rejudge_evaluation(
    actor: Actor,
    evaluation: Evaluation,
    judge_ref: str = "main",
    *,
    budget: Mapping[str, Any] | None = None,
    is_fresh: bool = False,
    enqueue: bool = True,
) -> Evaluation:
    """Start judging the answers of an evaluation that has ended by another version of the judge; no agent is asked.

    Returns the evaluation that holds the new scores: the one that runs or is finished if the same was asked before,
    unless `is_fresh`. Its judge uses no more than `budget`. With `enqueue` false the caller performs it. Raises
    LoopError and what a bad ref raises.
    """
    actor.require(Role.DEVELOPER)
    judge_model = chat.build_model(chat.Role.JUDGE).name
    options: dict[str, Any] = {"judge_model": judge_model, "is_fresh": is_fresh, "budget": budget}
    made = create_rejudgement(actor, evaluation, judge_ref, **options)
    if enqueue:
        enqueue_evaluation(made)
    return made
