"""What people do with the inbox: take failures of an evaluation, ignore and reopen cases."""

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop import taken_failures
from evolution.loop.cluster_states import regress
from evolution.models import Evaluation, FailureCase
from evolution.states import CaseState, EvaluationState
from evolution.tasks.assigning import request_assignment
from evolution.transitions import move, record


@transaction.atomic
def take_failures(actor: Actor, evaluation: Evaluation) -> int:
    """Take the failed cases of an evaluation into the inbox; returns how many came in or are open again."""
    actor.require(Role.DEVELOPER)
    if evaluation.state not in {EvaluationState.FINISHED, EvaluationState.PARTIAL}:
        what = {"evaluation": evaluation, "state": evaluation.get_state_display()}
        raise LoopError(_("%(evaluation)s is %(state)s; wait until it is finished") % what)
    taken = taken_failures.take_failures(actor, evaluation)
    record(actor, "evaluation.failures_taken", evaluation, taken=taken)
    request_assignment(evaluation.harness)
    return taken


@transaction.atomic
def ignore_case(actor: Actor, case: FailureCase, reason: str) -> None:
    """Put a case aside; it is not clustered any more and says why."""
    actor.require(Role.DEVELOPER)
    if case.state != CaseState.IGNORED:
        move(case, CaseState.IGNORED, actor, reason, note=reason)


@transaction.atomic
def reopen_case(actor: Actor, case: FailureCase) -> None:
    """Take a case that was ignored or resolved back into the inbox."""
    actor.require(Role.DEVELOPER)
    if case.state != CaseState.OPEN:
        move(case, CaseState.OPEN, actor, note="")
        regress(actor, [case.cluster_id] if case.cluster_id else [])
