"""The buttons that decide a step: which there are, and why one can't be pressed. The rules are the actions' own."""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.models import Step
from evolution.states import Outcome, StepState


@dataclass(frozen=True)
class Choice:
    """One button; `obstacle` says why it is disabled, and is empty when it is not."""

    name: str
    label: str
    help: str
    needs_reason: bool
    obstacle: str


def list_choices(step: Step, actor: Actor) -> list[Choice]:
    """The decisions that a step still has before it; none when it is closed."""
    if step.state == StepState.PROMOTED:
        return [_roll_back_promoted(actor), _stop(actor, "")]
    if step.state not in {StepState.READY, StepState.EVALUATING, StepState.EVALUATED}:
        return []
    return [_promote(step, actor), *_others(step, actor)]


def _promote(step: Step, actor: Actor) -> Choice:
    is_clear = step.verdict is not None and step.verdict.outcome == Outcome.PROMOTE
    obstacle = _role_obstacle(actor, Role.OPERATOR)
    if step.state != StepState.EVALUATED:
        obstacle = _("Evaluate the step first.") if step.state == StepState.READY else _running()
    explanation = _("Main moves to the candidate, and the release is tagged.")
    if not is_clear:
        explanation = _("The verdict is not promote: say why you promote all the same.")
    return Choice("promote", _("Promote"), explanation, not is_clear, obstacle)


def _others(step: Step, actor: Actor) -> list[Choice]:
    busy = _running() if step.state == StepState.EVALUATING else ""
    developer = _role_obstacle(actor, Role.DEVELOPER)
    back = _("The proposals go back to their reviewers.")
    given_up = _("The step is given up and its proposals are rejected; the live version stays.")
    return [
        Choice("revise", _("Revise"), back, needs_reason=True, obstacle=busy or developer),
        Choice("roll_back", _("Roll back"), given_up, needs_reason=True, obstacle=busy or developer),
        _stop(actor, busy),
    ]


def _stop(actor: Actor, busy: str) -> Choice:
    end = _("The evolution ends here, with the best version so far.")
    return Choice(
        "stop", _("Stop"), end, needs_reason=True, obstacle=busy or _role_obstacle(actor, Role.OPERATOR)
    )


def _roll_back_promoted(actor: Actor) -> Choice:
    explanation = _("The live version becomes what it was before this step, as a new commit.")
    obstacle = _role_obstacle(actor, Role.OPERATOR)
    return Choice("roll_back", _("Roll back"), explanation, needs_reason=True, obstacle=obstacle)


def _running() -> str:
    return _("Wait until the evaluations are finished, or cancel them.")


def _role_obstacle(actor: Actor, role: Role) -> str:
    if actor.role >= role:
        return ""
    return _("This needs an operator.") if role == Role.OPERATOR else _("This needs a developer.")
