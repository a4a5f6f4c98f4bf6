from typing import Any

import pytest

from evolution.actions.dataset_cases import AddedCases, Wanted, add_to_dataset
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import LoopError
from evolution.loop.visibility import is_visible_to_models
from evolution.models import DatasetVersion, Event, FailureCase, Harness
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import DEV, make_case, make_harness, make_version
from tests.workbench.views.conftest import make_diagnosis

TRAJECTORY = {
    "tool_calls": [{"turn": 1, "name": "get_price", "arguments": {"link_id": 3}, "result": {"price": 89}}]
}
FACTS = {"facts": [{"fact": "89元", "accept": ["89元"]}], "forbidden": []}


@pytest.fixture
def harness(db: None) -> Harness:
    return make_harness()


@pytest.fixture
def version(harness: Harness) -> DatasetVersion:
    return make_version(harness, [make_case(f"q{n}") for n in range(3)])


def add(harness: Harness, *failures: FailureCase, **fields: Any) -> AddedCases:
    wanted = Wanted(**{"dataset": "kept", "split": "dev", **fields})
    return add_to_dataset(DEV, harness, list(failures), wanted)


def test_a_failure_becomes_a_case_of_a_new_version(harness: Harness, version: DatasetVersion) -> None:
    failure = make_failure(harness, trajectory=TRAJECTORY, category="price", language="zh")

    done = add(harness, failure, dataset=version.dataset.name, key="price-1", expected=FACTS)

    assert done.added.version.number == version.number + 1
    assert (version.cases.count(), done.added.version.cases.count()) == (3, 4)
    case = done.added.version.cases.get(key="price-1")
    assert case.fixtures == {"get_price": [{"arguments": {"link_id": 3}, "result": {"price": 89}}]}
    assert case.expected == {**FACTS, "language": "zh"}
    assert (case.request, case.category, case.split) == (failure.request, "price", "dev")


def test_adding_again_changes_nothing(harness: Harness) -> None:
    failure = make_failure(harness)
    first = add(harness, failure)
    events = Event.objects.count()

    again = add(harness, FailureCase.objects.get(pk=failure.pk))

    assert again.added.version == first.added.version
    assert again.added.kept == first.added.added == [f"case-{failure.pk}"]
    assert (DatasetVersion.objects.count(), Event.objects.count()) == (1, events)


def test_facts_that_are_written_later_make_a_version(harness: Harness) -> None:
    failure = make_failure(harness)
    add(harness, failure)

    done = add(harness, failure, expected=FACTS)

    assert done.added.changed == [f"case-{failure.pk}"]
    assert [
        version.cases.get().expected["facts"] for version in DatasetVersion.objects.order_by("number")
    ] == [
        [],
        FACTS["facts"],
    ]


def test_the_key_of_another_case_is_refused(harness: Harness) -> None:
    add(harness, make_failure(harness, "one"), key="price-1")

    with pytest.raises(LoopError, match="price-1"):
        add(harness, make_failure(harness, "two"), key="price-1")

    assert DatasetVersion.objects.count() == 1


def test_many_go_into_one_version(harness: Harness) -> None:
    failures = [make_failure(harness, f"case {n}") for n in range(5)]
    bare = make_failure(harness, "no words", request={})

    done = add(harness, *failures, bare, key="price")

    assert done.left_out == [bare]
    assert set(done.added.version.cases.values_list("key", flat=True)) == {f"price-{f.pk}" for f in failures}
    assert DatasetVersion.objects.count() == 1


def test_a_guard_case_is_hidden_from_the_models(harness: Harness) -> None:
    failure = make_failure(harness)

    add(harness, failure, split="guard")

    assert not is_visible_to_models(FailureCase.objects.get(pk=failure.pk))


def test_what_a_diagnosis_has_seen_can_not_be_sealed(harness: Harness) -> None:
    cluster = make_cluster(harness, texts=("seen",))
    failure = cluster.members.get()
    make_diagnosis(cluster, failure)

    with pytest.raises(LoopError, match=str(failure.pk)):
        add(harness, failure, split="sealed")


def test_a_failure_without_a_question_is_refused(harness: Harness) -> None:
    with pytest.raises(LoopError):
        add(harness, make_failure(harness, request={"any": 1}))

    assert not harness.datasets.exists()


def test_an_annotator_adds_nothing(harness: Harness) -> None:
    with pytest.raises(NotAllowed):
        add_to_dataset(Actor("ann", Role.ANNOTATOR), harness, [make_failure(harness)], Wanted("kept", "dev"))


@pytest.mark.parametrize("odd", [True, 5, "x", [1], {"tool_calls": 5}, {"messages": [1]}])
def test_any_stored_trajectory_can_be_added(harness: Harness, odd: Any) -> None:
    failure = make_failure(harness, trajectory=odd, context=odd)

    assert add(harness, failure).added.added
