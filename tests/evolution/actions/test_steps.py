from collections.abc import Callable

import pytest

from evolution.actions import releases, steps
from evolution.actors import NotAllowed
from evolution.errors import LoopError
from evolution.models import Event, Step
from evolution.states import StepState
from tests.evolution.measured import ANNA, DEV, VIEWER, make_harness, make_measured_step, make_proposal, teach

pytestmark = pytest.mark.django_db
GOOD = teach(*range(1, 21))


def measured() -> Step:
    return make_measured_step(GOOD)


@pytest.mark.parametrize(
    "action",
    [
        lambda step: steps.start_step(VIEWER, step.harness, []),
        lambda step: steps.evaluate_step(VIEWER, step),
        lambda step: steps.take_out(VIEWER, step, step.proposals.get()),
        lambda step: steps.rebuild_step(VIEWER, step),
        lambda step: steps.revise_step(VIEWER, step, "x"),
        lambda step: steps.roll_back_step(VIEWER, step, "x"),
        lambda step: steps.promote_step(DEV, step, "x"),
        lambda step: steps.stop_evolution(DEV, step, "x"),
        lambda step: releases.roll_back(DEV, step.harness, step.harness.releases.get(), "x"),
    ],
)
def test_role_is_not_enough(action: Callable[[Step], object]) -> None:
    step = measured()
    with pytest.raises(NotAllowed):
        action(step)
    step.refresh_from_db()
    assert step.state == StepState.EVALUATED


def test_developer_rolls_back_a_measured_step_but_not_a_live_one() -> None:
    step = measured()
    steps.promote_step(ANNA, step)
    with pytest.raises(NotAllowed):
        steps.roll_back_step(DEV, step, "x")
    steps.roll_back_step(ANNA, step, "x")
    assert step.state == StepState.ROLLED_BACK


def test_developer_does_not_roll_back_what_was_promoted_meanwhile() -> None:
    step = measured()
    stale = Step.objects.get(pk=step.pk)
    steps.promote_step(ANNA, step)
    with pytest.raises(NotAllowed):
        steps.roll_back_step(DEV, stale, "x")
    assert Step.objects.get().state == StepState.PROMOTED


@pytest.mark.parametrize("action", [steps.revise_step, steps.roll_back_step, steps.stop_evolution])
def test_deciding_against_a_step_needs_a_reason(action: Callable[..., object]) -> None:
    step = measured()
    with pytest.raises(LoopError, match="say why"):
        action(ANNA, step, " ")
    assert Step.objects.get().state == StepState.EVALUATED


def test_rolling_back_what_is_live_needs_a_reason() -> None:
    step = measured()
    steps.promote_step(ANNA, step)
    with pytest.raises(LoopError, match="say why"):
        steps.roll_back_step(ANNA, step, "")
    assert Step.objects.get().state == StepState.PROMOTED


def test_decision_is_on_the_audit_trail_with_its_reason() -> None:
    step = measured()
    steps.revise_step(DEV, step, "too broad")
    event = Event.objects.get(verb="step.revised")
    assert (event.actor, event.reason, event.target_id) == ("dev", "too broad", step.pk)


def test_proposal_of_another_step_is_not_taken_out() -> None:
    step = measured()
    with pytest.raises(LoopError, match="not in"):
        steps.take_out(DEV, step, make_proposal(step.harness, GOOD))


def test_rolling_back_to_a_release_needs_a_reason() -> None:
    harness = make_harness()
    with pytest.raises(LoopError, match="say why"):
        releases.roll_back(ANNA, harness, harness.releases.get(), " ")
