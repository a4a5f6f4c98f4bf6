"""What people do with evolution steps: start, evaluate, and decide them."""

from collections.abc import Sequence

from django.db import transaction

from evolution.actions.evaluations import name_models
from evolution.actions.reasons import require_reason
from evolution.actors import Actor, Role
from evolution.loop import promotion, steps
from evolution.loop.evaluation import newest_version
from evolution.loop.locks import lock_record
from evolution.loop.steps import Rebuilt
from evolution.models import Evaluation, Harness, Proposal, Release, Step
from evolution.states import ProposalState, StepState
from evolution.tasks.evaluations import enqueue_evaluation


def start_step(actor: Actor, harness: Harness, proposals: Sequence[Proposal]) -> Step:
    """Merge confirmed proposals on the branch of a new step."""
    actor.require(Role.DEVELOPER)
    return steps.merge_step(actor, harness, proposals)


@transaction.atomic
def evaluate_step(actor: Actor, step: Step, *, enqueue: bool = True) -> list[Evaluation]:
    """Measure what is live and the step's candidate; the verdict comes with the second of them. Returns both.

    With `enqueue` false the caller performs them.
    """
    actor.require(Role.DEVELOPER)
    models = name_models(step.harness, newest_version(step.harness))
    both = steps.measure_step(actor, step, **models)
    for evaluation in both if enqueue else ():
        enqueue_evaluation(evaluation)
    return both


def take_out(actor: Actor, step: Step, proposal: Proposal) -> Rebuilt:
    """Go on with the step without one of its proposals, which is confirmed again; the step is to be evaluated anew."""
    actor.require(Role.DEVELOPER)
    return steps.rebuild_step(actor, step, without=proposal)


@transaction.atomic
def put_in(actor: Actor, step: Step, proposal: Proposal) -> Rebuilt:
    """Add a confirmed proposal to an undecided step, which is to be evaluated anew; in it already, nothing happens."""
    actor.require(Role.DEVELOPER)
    lock_record(step)
    proposal.refresh_from_db()
    if proposal.step_id == step.pk and proposal.state == ProposalState.IN_STEP:
        return Rebuilt((proposal,), ())
    return steps.rebuild_step(actor, step, adding=proposal)


def rebuild_step(actor: Actor, step: Step) -> Rebuilt:
    """Put the step's proposals on what is live now and merge them again; the step is to be evaluated anew.

    Those whose diff is another there leave it, and wait for review.
    """
    actor.require(Role.DEVELOPER)
    return steps.rebuild_step(actor, step)


def promote_step(actor: Actor, step: Step, reason: str = "") -> Release:
    """Make the step's candidate live. Against the verdict, or without a clear one, this needs a reason."""
    actor.require(Role.OPERATOR)
    return promotion.promote(actor, step, reason)


def revise_step(actor: Actor, step: Step, reason: str) -> None:
    """Send the step's proposals back to be amended."""
    actor.require(Role.DEVELOPER)
    require_reason(reason)
    promotion.revise(actor, step, reason)


@transaction.atomic
def roll_back_step(actor: Actor, step: Step, reason: str) -> None:
    """Give the step up; if it is live, what was live before becomes live again, which takes an operator."""
    actor.require(Role.DEVELOPER)
    # What the page showed may have been promoted since.
    lock_record(step)
    actor.require(Role.OPERATOR if step.state == StepState.PROMOTED else Role.DEVELOPER)
    require_reason(reason)
    promotion.roll_back(actor, step, reason)


def stop_evolution(actor: Actor, step: Step, reason: str) -> str:
    """Close the series with the version that the early-stop rule selects, and make that live. Returns its commit."""
    actor.require(Role.OPERATOR)
    require_reason(reason)
    return promotion.stop(actor, step, reason)
