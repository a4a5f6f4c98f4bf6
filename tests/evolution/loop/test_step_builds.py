"""A step put together as it was before is the version that was measured then."""

import pytest

from evolution.loop import steps
from evolution.loop.step_builds import list_builds
from evolution.models import Proposal, Step
from evolution.states import StepState
from tests.evolution.measured import (
    ANNA,
    DEV,
    MANY,
    make_harness,
    make_proposal,
    make_version,
    measure,
    teach,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def step() -> Step:
    """Measured, of two proposals."""
    harness = make_harness()
    make_version(harness, MANY)
    more = make_proposal(harness, b"hi\n", path="hooks/notes.txt")
    return measure(steps.merge_step(DEV, harness, [make_proposal(harness, teach(*range(1, 12))), more]))


def test_the_same_set_again_is_the_same_version_and_its_measurement_is_taken_up(step: Step) -> None:
    candidate, was = step.candidate_commit, step.candidate_evaluation
    more = step.proposals.order_by("pk")[1]
    steps.rebuild_step(DEV, step, without=more)
    assert step.candidate_commit != candidate
    # By somebody else, so that it would be another commit.
    steps.rebuild_step(ANNA, step, adding=Proposal.objects.get(pk=more.pk))
    assert (step.candidate_commit, step.state) == (candidate, StepState.READY)
    assert steps.measure_step(DEV, step, model="m", judge_model="j")[1] == was
    assert step.state == StepState.EVALUATED


def test_builds_are_told_with_the_heads_that_were_in_them(step: Step) -> None:
    proposals = list(step.proposals.order_by("pk"))
    first = step.candidate_commit
    steps.rebuild_step(DEV, step, without=proposals[1])
    heads = [{proposal.pk: proposal.head_commit for proposal in part} for part in (proposals, proposals[:1])]
    builds = list_builds(step)
    assert [build.commit for build in builds] == [first, step.candidate_commit]
    assert [build.heads for build in builds] == heads


def test_a_set_with_another_head_is_another_version(step: Step) -> None:
    candidate = step.candidate_commit
    more = step.proposals.order_by("pk")[1]
    steps.rebuild_step(DEV, step, without=more)
    other = make_proposal(step.harness, b"hi\n", path="hooks/notes.txt")
    steps.rebuild_step(DEV, step, adding=other)
    assert step.candidate_commit != candidate
