"""The buttons that decide a step: which there are, what is against them, what they did. The rules are the actions'."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from evolution.actors import Actor, Role
from evolution.models import Step
from evolution.queries.releases import live_release
from evolution.queries.steps import find_gap, foresee_stop
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
        return [_roll_back_promoted(actor), _stop(step, actor, "")]
    if step.state not in {StepState.READY, StepState.EVALUATING, StepState.EVALUATED}:
        return []
    return [_promote(step, actor), *_others(step, actor)]


def _promote(step: Step, actor: Actor) -> Choice:
    is_clear = step.verdict is not None and step.verdict.outcome == Outcome.PROMOTE
    obstacle = _role_obstacle(actor, Role.OPERATOR)
    if step.state == StepState.EVALUATED:
        obstacle = obstacle or capfirst(find_gap(step))
    else:
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
        _stop(step, actor, busy),
    ]


def _stop(step: Step, actor: Actor, busy: str) -> Choice:
    obstacle = busy or _role_obstacle(actor, Role.OPERATOR)
    end = "" if obstacle else _explain_stop(step)
    return Choice("stop", _("Stop"), end, needs_reason=True, obstacle=obstacle)


def _explain_stop(step: Step) -> str:
    """Which version will be live, and what becomes of main and of the step's proposals."""
    forecast = foresee_stop(step.harness)
    if forecast is None:
        return _("The evolution ends here, with the best version so far.")
    number = forecast.step_number
    version = (
        _("the baseline") if number is None else _("the version of step %(number)d") % {"number": number}
    )
    values = {"version": version, "commit": forecast.commit[:8]}
    if forecast.moves_main:
        text = _(
            "The evolution ends with %(version)s (%(commit)s). It becomes live: main gets its files, in a new commit."
        )
    else:
        text = _("The evolution ends with %(version)s (%(commit)s). It is live already: main stays as it is.")
    if step.state == StepState.PROMOTED:
        return text % values
    return " ".join([text % values, _("The proposals go back to their reviewers.")])


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


def list_obstacles(choices: Sequence[Choice]) -> list[tuple[str, str]]:
    """Each obstacle once, with the labels of the buttons that it disables, or without when it disables all."""
    labels: dict[str, list[str]] = {}
    for choice in choices:
        if choice.obstacle:
            labels.setdefault(choice.obstacle, []).append(choice.label)
    return [
        ("" if len(names) == len(choices) else ", ".join(names), obstacle)
        for obstacle, names in labels.items()
    ]


def describe_decision(step: Step, decision: str, *, was_live: bool) -> SafeString:
    """What a decision brought, with a link onward; `was_live` is whether the step was promoted before it."""
    harness = step.harness
    live = live_release(harness)
    values = {
        "number": step.number,
        "tag": live.tag if live else "–",
        "commit": live.commit[:8] if live else "–",
    }
    texts = {
        "promote": (_("%(tag)s is live: %(commit)s."), "board", _("What to do next")),
        "revise": (
            _("Step %(number)d is closed; its proposals wait for their reviewers again."),
            "proposals",
            _("To the proposals"),
        ),
        "roll_back": (
            _("Step %(number)d is given up and its proposals are rejected; the live version stays."),
            "clusters",
            _("To the clusters"),
        ),
        "stop": (_("The evolution is stopped. %(tag)s is live: %(commit)s."), "board", _("To the board")),
    }
    text, page, label = texts[decision]
    if decision == "roll_back" and was_live:
        text = _("Step %(number)d is taken back. %(tag)s is live: %(commit)s, with the files from before it.")
        page, label = "releases", _("To the releases")
    return format_html('{} <a href="{}">{}</a>', text % values, reverse(page, args=[harness.name]), label)
