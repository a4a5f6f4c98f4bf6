import pytest

from evolution.actions.cases import take_failures
from evolution.loop import promotion, steps
from evolution.models import Cluster, FailureCase, Step
from evolution.states import CaseState, ClusterState
from tests.evolution.measured import ANNA, DEV, make_measured_step, make_proposal, measure, teach

pytestmark = pytest.mark.django_db


def promoted(first_known: int) -> Step:
    """A promoted step whose base failed 38 of 40 cases, all of them taken into the inbox as one cluster."""
    step = make_measured_step(teach(*range(1, first_known + 1)))
    assert step.base_evaluation is not None
    take_failures(DEV, step.base_evaluation)
    cluster = Cluster.objects.create(harness=step.harness, number=1, name="no knowledge")
    FailureCase.objects.update(cluster=cluster)
    promotion.promote(ANNA, step)
    return step


def resolved() -> int:
    return FailureCase.objects.filter(state=CaseState.RESOLVED).count()


def test_roll_back_opens_again_what_the_step_had_mended() -> None:
    step = promoted(40)
    assert (resolved(), Cluster.objects.get().state) == (38, ClusterState.RESOLVED)
    promotion.roll_back(ANNA, step, "complaints")
    assert (resolved(), Cluster.objects.get().state) == (0, ClusterState.REGRESSED)


def test_roll_back_of_the_second_step_leaves_what_the_first_mended() -> None:
    first = promoted(20)
    role = teach(*range(1, 41))
    second = measure(steps.merge_step(DEV, first.harness, [make_proposal(first.harness, role)]))
    promotion.promote(ANNA, second)
    assert resolved() == 38
    promotion.roll_back(ANNA, second, "complaints")
    assert resolved() == 18


def test_release_that_is_live_again_mends_again() -> None:
    step = promoted(20)
    promotion.roll_back(ANNA, step, "complaints")
    promotion.roll_back_to(ANNA, step.harness, step.harness.releases.get(number=2), "it was good")
    assert resolved() == 18
