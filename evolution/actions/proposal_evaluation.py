"""What people do to know what one proposal does by itself, before a step takes it with others."""

from django.db import transaction

from evolution.actions.evaluations import name_models
from evolution.actors import Actor, Role
from evolution.loop.alone import measure_alone
from evolution.loop.evaluation import newest_version
from evolution.loop.predictions import settle_alone
from evolution.loop.steps import settle_steps
from evolution.models import Evaluation, Proposal
from evolution.tasks.evaluations import enqueue_evaluation


@transaction.atomic
def evaluate_proposal(actor: Actor, proposal: Proposal, *, enqueue: bool = True) -> list[Evaluation]:
    """Measure the head of a proposal's branch against its base, alone. Returns both evaluations, the base first.

    What is measured already is taken. With `enqueue` false the caller performs them.
    """
    actor.require(Role.DEVELOPER)
    models = name_models(proposal.harness, newest_version(proposal.harness))
    both = measure_alone(actor, proposal, **models)
    # Steps that rest on an evaluation which is gone on with wait for it again.
    settle_steps(both[0])
    settle_alone(proposal)
    for evaluation in both if enqueue else ():
        enqueue_evaluation(evaluation)
    return both
