import pytest

from evolution.actions.diagnosis import amend_diagnosis, reject_diagnosis, start_diagnosis
from evolution.errors import LoopError
from evolution.models import Diagnosis, Event, Harness, Proposal, Step
from evolution.states import ClusterState, DiagnosisState, ProposalState
from tests.evolution.intake import make_cluster
from tests.evolution.measured import DEV

pytestmark = pytest.mark.django_db


@pytest.fixture
def diagnosis() -> Diagnosis:
    harness = Harness.objects.create(name="shop", kind="agent", path="shop.git")
    return Diagnosis.objects.create(
        harness=harness,
        cluster=make_cluster(harness),
        part="skill",
        hypothesis="old",
        changes=["x"],
        model="m",
    )


def test_people_amend_what_the_model_said(diagnosis: Diagnosis) -> None:
    amend_diagnosis(DEV, diagnosis, hypothesis=" new ", changes=["y", " "])
    diagnosis.refresh_from_db()
    assert (diagnosis.hypothesis, diagnosis.changes, diagnosis.amended_by) == ("new", ["y"], "dev")
    assert Event.objects.get().data["old"] == {
        "hypothesis": "old",
        "changes": ["x"],
        "part": "skill",
        "path": "",
    }


def test_an_amendment_without_a_change_leaves_no_trace(diagnosis: Diagnosis) -> None:
    amend_diagnosis(DEV, diagnosis, hypothesis="old")
    assert not Event.objects.exists()


def test_rejecting_can_be_repeated(diagnosis: Diagnosis) -> None:
    for _ in range(2):
        reject_diagnosis(DEV, diagnosis, "看错了")
    assert Diagnosis.objects.get().state == DiagnosisState.REJECTED
    assert Event.objects.count() == 1
    with pytest.raises(LoopError, match="rejected"):
        amend_diagnosis(DEV, diagnosis, hypothesis="new")


def test_rejecting_needs_a_reason(diagnosis: Diagnosis) -> None:
    with pytest.raises(LoopError, match="say why"):
        reject_diagnosis(DEV, diagnosis, " ")
    assert Diagnosis.objects.get().state == DiagnosisState.OPEN


def test_diagnosis_behind_a_step_is_not_rejected(diagnosis: Diagnosis) -> None:
    step = Step.objects.create(harness=diagnosis.harness, number=1, branch="step/1")
    Proposal.objects.create(
        harness=diagnosis.harness, diagnosis=diagnosis, step=step, state=ProposalState.IN_STEP
    )
    with pytest.raises(LoopError, match="take it out of the step"):
        reject_diagnosis(DEV, diagnosis, "wrong")
    assert Diagnosis.objects.get().state == DiagnosisState.OPEN


def test_diagnosis_behind_an_approved_proposal_is_not_rejected(diagnosis: Diagnosis) -> None:
    Proposal.objects.create(harness=diagnosis.harness, diagnosis=diagnosis, state=ProposalState.CONFIRMED)
    with pytest.raises(LoopError, match="approved; reject it first"):
        reject_diagnosis(DEV, diagnosis, "wrong")
    assert Diagnosis.objects.get().state == DiagnosisState.OPEN


def test_one_diagnosis_of_a_cluster_at_a_time(diagnosis: Diagnosis) -> None:
    assert start_diagnosis(DEV, diagnosis.cluster) == start_diagnosis(DEV, diagnosis.cluster)
    other = make_cluster(diagnosis.harness, 2, state=ClusterState.IGNORED)
    with pytest.raises(LoopError, match="ignored"):
        start_diagnosis(DEV, other)


def test_people_correct_the_part_that_is_to_blame(diagnosis: Diagnosis) -> None:
    Diagnosis.objects.update(path="skills/a/SKILL.md")
    amend_diagnosis(DEV, diagnosis, part="judge")
    diagnosis.refresh_from_db()
    assert (diagnosis.part, diagnosis.path) == ("judge", "")
    with pytest.raises(LoopError, match="no part"):
        amend_diagnosis(DEV, diagnosis, part="weather")


def test_another_model_can_be_asked(diagnosis: Diagnosis) -> None:
    assert start_diagnosis(DEV, diagnosis.cluster, " big-model ").parameters == {"model": "big-model"}
    other = make_cluster(diagnosis.harness, 2)
    with pytest.raises(LoopError, match="no name of a model"):
        start_diagnosis(DEV, other, "x" * 300)
