import pytest

from evolution.loop.halves import is_held_in
from evolution.loop.visibility import find_round, known_keys, shown_members, wording_of
from evolution.models import Cluster, DatasetCase, Harness
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import make_case, make_version

pytestmark = pytest.mark.django_db

KEYS = [f"q{n}" for n in range(1, 13)]


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


@pytest.fixture
def cluster(harness: Harness) -> Cluster:
    """Failures of twelve dev cases."""
    make_version(harness, [make_case(key) for key in KEYS])
    cluster = make_cluster(harness)
    for case in DatasetCase.objects.order_by("pk"):
        make_failure(harness, f"asked {case.key}", cluster=cluster, dataset_case=case)
    return cluster


def shown(cluster: Cluster, number: int) -> set[str]:
    return {case.dataset_case.key for case in shown_members(cluster, number) if case.dataset_case}


def test_drafters_see_the_half_of_their_round(harness: Harness, cluster: Cluster) -> None:
    for number in (1, 2, 3):
        assert shown(cluster, number) == {key for key in KEYS if is_held_in(number, key)}
    assert shown(cluster, 1) != shown(cluster, 2)


@pytest.mark.parametrize("split", ["guard", "sealed", "calibration"])
def test_a_case_that_moved_to_another_split_since_is_hidden(
    harness: Harness, cluster: Cluster, split: str
) -> None:
    key = next(key for key in KEYS if is_held_in(1, key))
    make_version(harness, [make_case(each, split if each == key else "dev") for each in KEYS])
    assert key not in shown(cluster, 1)


def test_an_imported_failure_that_asks_the_same_as_a_hidden_case_is_hidden(harness: Harness) -> None:
    make_version(harness, [make_case("How much is link 3?", "sealed"), make_case("x")])
    cluster = make_cluster(harness)
    make_failure(harness, "how much is link 3 ？", cluster=cluster)
    other = make_failure(harness, "how much is link 4?", cluster=cluster)
    assert [case.pk for case in shown_members(cluster, 1)] == [other.pk]


def test_the_round_that_can_see_a_case_is_found(harness: Harness) -> None:
    make_version(harness, [make_case("q1"), make_case("g", "guard")])
    dev, guard = DatasetCase.objects.get(key="q1"), DatasetCase.objects.get(key="g")
    cluster = make_cluster(harness)
    make_failure(harness, "g", cluster=cluster, dataset_case=guard)
    assert find_round(cluster) is None
    make_failure(harness, "q1", cluster=cluster, dataset_case=dev)
    assert find_round(cluster) == next(number for number in range(1, 30) if is_held_in(number, "q1"))


def test_wording_is_compared_without_width_case_and_punctuation() -> None:
    asked = {"danmaku": [{"user": "a", "text": "ＡＢＣ 多少钱？"}]}
    assert wording_of(asked) == wording_of({"danmaku": [{"user": "b", "text": "abc多少钱"}]})
    assert wording_of({}) == ""
    assert wording_of({"user": {"goal": "Cancel it."}}) == "cancelit"


@pytest.mark.parametrize("key", ["calibration-001", "calibration-1"])
def test_a_calibration_case_is_hidden_whatever_its_key_is(harness: Harness, key: str) -> None:
    make_version(harness, [make_case(key, "calibration"), make_case("x")])
    cluster = make_cluster(harness)
    make_failure(harness, key, cluster=cluster)
    assert shown_members(cluster, 1) == []


def test_what_asks_the_same_as_a_dev_case_counts_as_that_case(harness: Harness) -> None:
    make_version(harness, [make_case("How much?"), make_case("x"), make_case("s", "sealed")])
    cases = [make_failure(harness, "how MUCH"), make_failure(harness, "s"), make_failure(harness, "other")]
    assert known_keys(harness, cases) == ["How much?"]
