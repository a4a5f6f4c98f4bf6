from dataclasses import replace
from typing import Any

import pytest

from evolution.actions.dataset_cases import Wanted, add_to_dataset
from evolution.actions.diagnosis import reject_diagnosis
from evolution.actions.handling import Correction, handle_diagnosis, reopen_diagnosis
from evolution.actors import NotAllowed
from evolution.errors import LoopError
from evolution.loop.datasets import import_dataset
from evolution.loop.visibility import hidden_cases, is_visible_to_models, shown_members
from evolution.models import Cluster, DatasetCase, Diagnosis, Event, FailureCase, Harness, Proposal
from evolution.states import CaseState, ClusterState, DiagnosisState, Handling, ProposalState
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import DEV, VIEWER, make_case, make_version

pytestmark = pytest.mark.django_db

WHY = "the reply is right"


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


@pytest.fixture
def cluster(harness: Harness) -> Cluster:
    """Two failures of dev cases."""
    make_version(harness, [make_case("q1"), make_case("q2"), make_case("q3")])
    cluster = make_cluster(harness, state=ClusterState.DIAGNOSED)
    for case in DatasetCase.objects.filter(key__in=["q1", "q2"]).order_by("key"):
        make_failure(harness, case.key, cluster=cluster, dataset_case=case, reply="89元")
    return cluster


def diagnose(cluster: Cluster, part: str = "judge", count: int = 2) -> Diagnosis:
    members = cluster.members.order_by("pk")[:count]
    evidence = [{"case": case.pk, "turn": 0, "quote": "x", "verified": True} for case in members]
    return Diagnosis.objects.create(
        harness=cluster.harness, cluster=cluster, part=part, hypothesis="h", evidence=evidence, model="m"
    )


def states(cluster: Cluster) -> list[str]:
    return [case.state for case in FailureCase.objects.filter(cluster=cluster).order_by("pk")]


def newest(key: str) -> DatasetCase | None:
    return DatasetCase.objects.filter(key=key).order_by("-version__number").first()


def handle(diagnosis: Diagnosis, handling: Handling, **options: Any) -> Diagnosis:
    handle_diagnosis(DEV, diagnosis, handling, WHY, **options)
    return Diagnosis.objects.get(pk=diagnosis.pk)


def test_ignoring_puts_the_cluster_aside(cluster: Cluster) -> None:
    done = handle(diagnose(cluster, "model"), Handling.IGNORED)
    assert (done.state, done.handled_as) == (DiagnosisState.ACCEPTED, Handling.IGNORED)
    assert Cluster.objects.get().state == ClusterState.IGNORED
    assert states(cluster) == [CaseState.IGNORED] * 2


def test_cases_go_to_the_judges_calibration_with_a_persons_word(cluster: Cluster) -> None:
    handle(diagnose(cluster), Handling.CALIBRATION)
    case = FailureCase.objects.filter(cluster=cluster).order_by("pk")[0]
    assert case.dataset_case is not None
    assert (case.dataset_case.split, case.dataset_case.key) == ("calibration", f"calibration-{case.pk}")
    assert not is_visible_to_models(case)
    assert case.signals["feedback"] == [{"name": "judge", "value": "wrong", "comment": WHY, "by": "dev"}]
    assert case.dataset_case.version.number == 2
    # The dev case is asked as before.
    assert newest("q1") is not None
    assert states(cluster) == [CaseState.IGNORED] * 2
    assert Cluster.objects.get().state == ClusterState.RESOLVED


def test_what_an_approved_proposal_rests_on_is_not_dealt_with_otherwise(cluster: Cluster) -> None:
    diagnosis = diagnose(cluster)
    Proposal.objects.create(harness=cluster.harness, diagnosis=diagnosis, state=ProposalState.CONFIRMED)
    with pytest.raises(LoopError, match="approved; reject it first"):
        handle(diagnosis, Handling.IGNORED)
    assert Diagnosis.objects.get().handled_as == ""


def test_what_was_done_is_taken_back_before_the_diagnosis_is_rejected(cluster: Cluster) -> None:
    diagnosis = handle(diagnose(cluster), Handling.CALIBRATION)
    with pytest.raises(LoopError, match="dealt with; reopen it first"):
        reject_diagnosis(DEV, diagnosis, "the judge was right")
    assert Diagnosis.objects.get().state == DiagnosisState.ACCEPTED
    reopen_diagnosis(DEV, diagnosis, "the judge was right")
    reject_diagnosis(DEV, diagnosis, "the judge was right")
    assert Diagnosis.objects.get().state == DiagnosisState.REJECTED
    assert states(cluster) == [CaseState.OPEN] * 2


def test_only_the_chosen_cases_go(cluster: Cluster) -> None:
    second = cluster.members.order_by("pk")[1]
    handle(diagnose(cluster), Handling.CALIBRATION, case_ids=[second.pk])
    assert states(cluster) == [CaseState.OPEN, CaseState.IGNORED]
    assert Cluster.objects.get().state == ClusterState.DIAGNOSED


def test_a_corrected_label_replaces_the_case_under_its_key(cluster: Cluster) -> None:
    first = cluster.members.order_by("pk")[0]
    facts = [{"fact": "89元", "accept": ["89"]}]
    handle(
        diagnose(cluster, "label", 1),
        Handling.RELABELLED,
        corrections=[Correction(first.pk, {"facts": facts})],
    )
    case = newest("q1")
    assert case is not None
    assert (case.expected["facts"], case.split, case.version.number) == (facts, "dev", 2)
    assert case.request == DatasetCase.objects.get(key="q1", version__number=1).request
    assert states(cluster) == [CaseState.IGNORED, CaseState.OPEN]


def correct_elsewhere(cluster: Cluster) -> None:
    """What somebody else has made of q1, on which the cluster's first case failed, since then."""
    now = make_case("q1")
    changed: dict[str, Any] = {
        "category": "another",
        "request": {"danmaku": [{"user": "u", "text": "q1 corrected"}]},
        "context": {"room": "another"},
        "fixtures": {"stock": 5},
        "faults": ["slow"],
        "expected": {**now.expected, "more": ["kept"]},
    }
    import_dataset(DEV, cluster.harness, "cases", [replace(now, **changed), make_case("q2")])


def test_a_corrected_label_keeps_what_others_have_corrected_since(cluster: Cluster) -> None:
    correct_elsewhere(cluster)
    before = newest("q1")
    first = cluster.members.order_by("pk")[0]
    facts = [{"fact": "89元", "accept": ["89"]}]
    handle(
        diagnose(cluster, "label", 1),
        Handling.RELABELLED,
        corrections=[Correction(first.pk, {"facts": facts})],
    )
    after = newest("q1")
    assert before is not None
    assert after is not None
    assert after.version.number == before.version.number + 1
    kept = ("category", "language", "split", "request", "context", "fixtures", "faults")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]
    assert after.expected == {**before.expected, "facts": facts}
    assert Event.objects.filter(verb="failurecase.added_to_dataset").count() == 1


def test_a_calibration_case_has_the_label_as_it_is_now(cluster: Cluster) -> None:
    correct_elsewhere(cluster)
    handle(diagnose(cluster, count=1), Handling.CALIBRATION)
    case = cluster.members.order_by("pk")[0].dataset_case
    assert case is not None
    assert case.expected["more"] == ["kept"]


def test_a_label_that_was_corrected_on_its_own_page_counts(cluster: Cluster) -> None:
    diagnosis = diagnose(cluster, "label", 1)
    with pytest.raises(LoopError, match="correct what is expected of q1"):
        handle(diagnosis, Handling.RELABELLED)
    first = cluster.members.order_by("pk")[0]
    expected = {"facts": [{"fact": "98元"}]}
    add_to_dataset(DEV, cluster.harness, [first], Wanted("cases", "dev", "q1", expected=expected))
    FailureCase.objects.filter(pk=first.pk).update(
        dataset_case=DatasetCase.objects.get(key="q1", version__number=1)
    )
    assert handle(diagnosis, Handling.RELABELLED).handled_as == Handling.RELABELLED


def test_an_imported_failure_has_no_label_to_correct(harness: Harness) -> None:
    cluster = make_cluster(harness, texts=("几天能到",))
    with pytest.raises(LoopError, match="in no dataset"):
        handle(diagnose(cluster, "label"), Handling.RELABELLED)


def test_doing_it_again_changes_nothing_and_another_way_is_refused(cluster: Cluster) -> None:
    diagnosis = handle(diagnose(cluster), Handling.CALIBRATION)
    events = Event.objects.count()
    handle(diagnosis, Handling.CALIBRATION)
    assert Event.objects.count() == events
    with pytest.raises(LoopError, match="dealt with"):
        handle(diagnosis, Handling.IGNORED)


@pytest.mark.parametrize("handling", [Handling.IGNORED, Handling.CALIBRATION])
def test_there_is_a_way_back(cluster: Cluster, handling: Handling) -> None:
    diagnosis = handle(diagnose(cluster), handling)
    reopen_diagnosis(DEV, diagnosis, "looked again")
    diagnosis.refresh_from_db()
    assert (diagnosis.state, diagnosis.handled_as) == (DiagnosisState.OPEN, "")
    assert states(cluster) == [CaseState.OPEN] * 2
    cases = FailureCase.objects.filter(cluster=cluster).order_by("pk")
    assert [case.dataset_case.key for case in cases if case.dataset_case] == ["q1", "q2"]
    seen = {case.pk for number in range(1, 9) for case in shown_members(cluster, number)}
    assert seen == {case.pk for case in cases}
    assert not any(case.signals.get("feedback") for case in cases)


@pytest.mark.parametrize(("part", "match"), [("skill", "blames the harness"), ("judge", "say why")])
def test_what_does_not_fit_is_refused(cluster: Cluster, part: str, match: str) -> None:
    with pytest.raises(LoopError, match=match):
        handle_diagnosis(DEV, diagnose(cluster, part), Handling.IGNORED, WHY if part == "skill" else " ")
    assert not Event.objects.filter(verb="diagnosis.handled").exists()


def test_cases_of_another_cluster_are_refused(cluster: Cluster) -> None:
    other = make_cluster(cluster.harness, 2, texts=("x",))
    stranger = other.members.get()
    with pytest.raises(LoopError, match="choose failures"):
        handle(diagnose(cluster), Handling.CALIBRATION, case_ids=[stranger.pk])


def test_viewers_may_not(cluster: Cluster) -> None:
    diagnosis = diagnose(cluster)
    with pytest.raises(NotAllowed):
        handle_diagnosis(VIEWER, diagnosis, Handling.IGNORED, WHY)
    with pytest.raises(NotAllowed):
        reopen_diagnosis(VIEWER, diagnosis, WHY)


def test_only_the_word_of_this_handling_goes_when_it_is_taken_back(cluster: Cluster) -> None:
    case = FailureCase.objects.filter(cluster=cluster).order_by("pk")[0]
    others = [{"name": "judge", "value": 0.2, "comment": "imported"}, {"name": "judge", "by": "anna"}]
    case.signals = {"feedback": others}
    case.save()
    diagnosis = handle(diagnose(cluster), Handling.CALIBRATION)
    reopen_diagnosis(DEV, diagnosis, "looked again")
    case.refresh_from_db()
    assert case.signals["feedback"] == others


def test_a_calibration_case_stays_hidden_when_its_failure_goes_elsewhere(cluster: Cluster) -> None:
    handle(diagnose(cluster, count=1), Handling.CALIBRATION)
    case = FailureCase.objects.filter(cluster=cluster).order_by("pk")[0]
    key = f"calibration-{case.pk}"
    for change in (
        lambda: add_to_dataset(DEV, cluster.harness, [case], Wanted("more", "dev", "new")),
        case.delete,
    ):
        change()
        hidden = hidden_cases(cluster.harness, 1)
        assert key in {hidden_key for _dataset, hidden_key in hidden.keys}
