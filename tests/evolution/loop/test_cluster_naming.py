import pytest

from evolution.loop.cluster_naming import name_with_model
from evolution.models import Cluster, DatasetCase, Event, Harness
from evolution.ports import NamedModel
from tests.evolution.clustering import add, cluster
from tests.evolution.intake import Answers, make_failure
from tests.evolution.measured import DEV, make_case, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def name(harness: Harness, *answers: dict[str, str] | str) -> tuple[int, list[str]]:
    model = Answers(*answers)
    return name_with_model(DEV, harness, NamedModel(model, "m"), lambda *_: None), model.asked


def answer(title: str) -> dict[str, str]:
    return {"name": title, "description": "都没查优惠券。"}


def test_the_model_names_a_cluster_by_its_members_beside_those_of_others(harness: Harness) -> None:
    add(harness, "a", 4), add(harness, "b")
    cluster(harness)
    count, asked = name(harness, answer("券后价报错"), answer("发货慢"))
    assert count == 2
    assert "a 0" in asked[0].split("Failures that are like them")[0]
    assert "b 0" in asked[0].split("Failures that are like them")[1]
    one = Cluster.objects.get(number=1)
    assert (one.name, one.description, one.named_by) == ("券后价报错", "都没查优惠券。", "model")
    assert Event.objects.filter(verb="cluster.named").count() == 2


def test_names_that_people_or_a_model_gave_stay(harness: Harness) -> None:
    add(harness, "a"), add(harness, "b")
    cluster(harness)
    Cluster.objects.filter(number=1).update(named_by="people", name="我起的")
    Cluster.objects.filter(number=2).update(named_by="model")
    assert name(harness) == (0, [])


def test_guard_cases_are_not_shown(harness: Harness) -> None:
    make_version(harness, [make_case("g", "guard")])
    guard = DatasetCase.objects.get()
    for _ in range(2):
        make_failure(harness, "a 泄露的词", dataset_case=guard)
        make_failure(harness, "a 公开说法")
    cluster(harness)
    _count, asked = name(harness, answer("x"))
    assert "泄露" not in asked[0]
    assert "公开" in asked[0]


def test_a_model_that_gives_no_json_leaves_the_terms(harness: Harness) -> None:
    add(harness, "a")
    cluster(harness)
    old = Cluster.objects.get().name
    assert name(harness, "no", "no")[0] == 0
    assert (Cluster.objects.get().name, Cluster.objects.get().named_by) == (old, "")
