import pytest

from evolution.actions.clusters import rename_cluster
from evolution.actions.harnesses import ensure_starter
from evolution.errors import LoopError, ModelOutputError
from evolution.loop.diagnosis import diagnose_cluster, sample_members
from evolution.models import Cluster, DatasetCase, Diagnosis, FailureCase, Harness
from evolution.ports import NamedModel
from evolution.states import CaseState, ClusterState
from evolution.transitions import move
from tests.evolution.intake import Answers, diagnosis_answer, make_cluster, make_failure
from tests.evolution.measured import DEV, make_case, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return ensure_starter(DEV, "live_commerce")


@pytest.fixture
def cluster(harness: Harness) -> Cluster:
    return make_cluster(harness, texts=("3号链接多少钱？", "券后价是多少"))


def diagnose(cluster: Cluster, *answers: object) -> tuple[Diagnosis, Answers]:
    model = Answers(*answers)  # type: ignore[arg-type]
    return diagnose_cluster(DEV, cluster, NamedModel(model, "m")), model


def quote(case: FailureCase, text: str) -> dict[str, object]:
    return {"case": str(case.pk), "turn": 0, "quote": text}


def test_a_diagnosis_is_kept_with_what_it_rests_on(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    diagnosis, _model = diagnose(cluster, diagnosis_answer(quote(case, case.title)))
    assert diagnosis.evidence == [{"case": case.pk, "turn": 0, "quote": case.title, "verified": True}]
    assert (diagnosis.part, diagnosis.model, len(diagnosis.base_commit)) == ("skill", "m", 40)
    cluster.refresh_from_db()
    assert (cluster.name, cluster.state) == ("券后价报错", ClusterState.DIAGNOSED)


@pytest.mark.parametrize("split", ["guard", "sealed", "calibration"])
def test_held_out_cases_are_never_shown(harness: Harness, cluster: Cluster, split: str) -> None:
    make_version(harness, [make_case("hidden", split)])
    hidden = DatasetCase.objects.get()
    make_failure(harness, "绝密的请求", cluster=cluster, strength=1.0, dataset_case=hidden)
    case = sample_members(cluster)[0]
    _diagnosis, model = diagnose(cluster, diagnosis_answer(quote(case, case.title)))
    assert "绝密的请求" not in model.asked[0]
    assert "券后价是多少" in model.asked[0]


def test_what_is_expected_of_a_case_is_never_shown(harness: Harness) -> None:
    make_version(harness, [make_case("d", "dev")])
    shown = DatasetCase.objects.get()
    DatasetCase.objects.update(
        expected={"facts": [{"fact": "期望事实"}]}, fixtures={"t": [{"result": "夹具"}]}
    )
    cluster = make_cluster(harness)
    case = make_failure(harness, "可见", cluster=cluster, strength=1.0, dataset_case=shown)
    _diagnosis, model = diagnose(cluster, diagnosis_answer(quote(case, "可见")))
    assert "期望事实" not in model.asked[0]
    assert "夹具" not in model.asked[0]


def test_a_cluster_of_held_out_cases_is_not_diagnosed(harness: Harness) -> None:
    make_version(harness, [make_case("g", "guard")])
    cluster = make_cluster(harness)
    make_failure(harness, cluster=cluster, dataset_case=DatasetCase.objects.get())
    with pytest.raises(LoopError, match="no open failure"):
        diagnose(cluster)


def test_invented_quotes_are_dropped(cluster: Cluster) -> None:
    first, second = cluster.members.order_by("pk")
    evidence = [
        quote(first, first.title),
        quote(second, first.title),
        quote(first, "没有说过"),
        quote(first, "  "),
    ]
    diagnosis, _model = diagnose(cluster, diagnosis_answer(*evidence))
    assert [item["case"] for item in diagnosis.evidence] == [first.pk]


def test_a_diagnosis_without_a_true_quote_is_refused(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    with pytest.raises(LoopError, match="none of the passages"):
        diagnose(
            cluster, diagnosis_answer(quote(case, "没有说过"), {"case": "x", "turn": 1, "quote": case.title})
        )
    assert not Diagnosis.objects.exists()


@pytest.mark.parametrize(
    "text", ["price  89", '"price": 89', '{"name": "防晒霜",\n "price": 89}', "日常价89元"]
)
def test_quotes_count_as_they_were_shown(harness: Harness, text: str) -> None:
    cluster = make_cluster(harness)
    calls = [{"turn": 1, "name": "get", "arguments": {}, "result": {"name": "防晒霜", "price": 89}}]
    case = make_failure(
        harness, cluster=cluster, trajectory={"tool_calls": calls}, reply="日常价89元", symptom="price\n89"
    )
    diagnosis, _model = diagnose(cluster, diagnosis_answer(quote(case, text)))
    assert diagnosis.evidence[0]["quote"] == text


def test_an_answer_of_another_shape_is_repaired_once(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    good = diagnosis_answer(quote(case, case.title))
    assert diagnose(cluster, "not json", good)[0].pk
    with pytest.raises(ModelOutputError, match="m did not give"):
        diagnose(cluster, "not json", {"part": "weather"})


def test_a_name_given_by_people_stays(cluster: Cluster) -> None:
    rename_cluster(DEV, cluster, "价格问题")
    case = cluster.members.first()
    assert case is not None
    diagnose(cluster, diagnosis_answer(quote(case, case.title)))
    cluster.refresh_from_db()
    assert cluster.name == "价格问题"


def test_the_sample_is_the_strongest_open_members(harness: Harness) -> None:
    cluster = make_cluster(harness)
    made = [make_failure(harness, cluster=cluster, strength=number / 20) for number in range(20)]
    move(made[19], CaseState.IGNORED, DEV)
    assert [case.pk for case in sample_members(cluster)] == [case.pk for case in made[18:6:-1]]
