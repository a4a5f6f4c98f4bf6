from unittest.mock import ANY

import pytest
from pytest_django import Settings

from evolution.actions.clusters import rename_cluster
from evolution.actions.harnesses import ensure_starter
from evolution.errors import LoopError, ModelOutputError
from evolution.loop.diagnosis import check_draftable, diagnose_cluster, sample_members, shown_keys
from evolution.loop.halves import is_held_in, list_held_in
from evolution.loop.jobs import create_job
from evolution.models import Cluster, DatasetCase, Diagnosis, Event, Exchange, FailureCase, Harness, Proposal
from evolution.ports import NamedModel
from evolution.states import CaseState, ClusterState, JobKind
from evolution.transitions import move
from tests.evolution.intake import Answers, diagnosis_answer, hypothesis, make_cluster, make_failure
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
    return diagnose_cluster(DEV, cluster, NamedModel(model, "m"))[0], model


def key_of_half(harness: Harness, *, held_in: bool) -> str:
    """A key whose case the drafters of the first step may see, or may not."""
    return next(key for n in range(99) if is_held_in(1, key := f"q{n}") is held_in)


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


def test_what_is_expected_of_a_case_is_never_shown(harness: Harness) -> None:
    make_version(harness, [make_case(key_of_half(harness, held_in=True), "dev")])
    shown = DatasetCase.objects.get()
    DatasetCase.objects.update(
        expected={"facts": [{"fact": "期望事实"}]}, fixtures={"t": [{"result": "夹具"}]}
    )
    cluster = make_cluster(harness)
    case = make_failure(harness, "可见", cluster=cluster, strength=1.0, dataset_case=shown)
    _diagnosis, model = diagnose(cluster, diagnosis_answer(quote(case, "可见")))
    assert "期望事实" not in model.asked[0]
    assert "夹具" not in model.asked[0]


def test_a_cluster_of_guard_cases_is_not_diagnosed(harness: Harness) -> None:
    make_version(harness, [make_case("g", "guard")])
    cluster = make_cluster(harness)
    make_failure(harness, cluster=cluster, dataset_case=DatasetCase.objects.get())
    with pytest.raises(LoopError, match="no open failure"):
        diagnose(cluster)


def test_a_cluster_that_is_held_out_says_when_it_can_be_seen(harness: Harness) -> None:
    key = key_of_half(harness, held_in=False)
    make_version(harness, [make_case(key)])
    cluster = make_cluster(harness)
    make_failure(harness, cluster=cluster, dataset_case=DatasetCase.objects.get())
    number = next(number for number in range(1, 20) if is_held_in(number, key))
    with pytest.raises(LoopError, match=rf"held out of the coming step.* for step {number}$"):
        diagnose(cluster)


def test_what_was_shown_and_cut_is_kept_with_the_exchange(harness: Harness, settings: Settings) -> None:
    settings.DIAGNOSIS_TOKENS = 16_000
    key = key_of_half(harness, held_in=True)
    make_version(harness, [make_case(key)])
    cluster = make_cluster(harness)
    calls = [{"turn": turn, "name": "get", "result": "very long " * 2_000} for turn in range(1, 9)]
    case = make_failure(
        harness,
        "可见",
        cluster=cluster,
        strength=1.0,
        dataset_case=DatasetCase.objects.get(),
        trajectory={"tool_calls": calls},
    )
    diagnosis, model = diagnose(cluster, diagnosis_answer(quote(case, "可见")))
    assert diagnosis.exchange is not None
    shown = diagnosis.exchange.shown
    assert (shown["cases"], shown["keys"], shown["round"]) == ([case.pk], [key], 1)
    assert {"case": case.pk, "turn": 1, "part": "get result", "characters": ANY} in shown["cut"]
    assert shown["tokens"] <= 16_000
    assert "[… " in model.asked[0]
    assert shown_keys(diagnosis) == [key]


def test_an_imported_failure_that_asks_the_same_counts_as_the_dev_case(harness: Harness) -> None:
    key = key_of_half(harness, held_in=True)
    make_version(harness, [make_case(key)])
    cluster = make_cluster(harness)
    case = make_failure(harness, key, cluster=cluster, reply="wrong answer")
    diagnosis, _model = diagnose(cluster, diagnosis_answer(quote(case, key)))
    assert shown_keys(diagnosis) == [key]
    assert list_held_in(2, [key], [Proposal(shown_keys=shown_keys(diagnosis))]) == [key]


def test_a_job_that_was_cut_off_after_its_answer_asks_nobody_again(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    job, _new = create_job(DEV, cluster.harness, JobKind.DIAGNOSE, cluster.pk)
    model = Answers(diagnosis_answer(quote(case, case.title)))
    first = diagnose_cluster(DEV, cluster, NamedModel(model, "m"), job)
    assert diagnose_cluster(DEV, cluster, NamedModel(model, "m"), job) == first
    assert (len(model.asked), Diagnosis.objects.count()) == (1, 1)


def test_the_same_hypothesis_counts_once(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    same = hypothesis(quote(case, case.title))
    other = hypothesis(quote(case, case.title), hypothesis="另一个原因")
    diagnose(cluster, {**diagnosis_answer(), "hypotheses": [same, same, other, same]})
    found = Diagnosis.objects.order_by("rank").values_list("rank", "hypothesis")
    assert list(found) == [(1, same["hypothesis"]), (2, "另一个原因")]


@pytest.mark.parametrize("path", ["prompts/" + "x" * 400, "prompts/../../x", "/etc/passwd", "prompts/./x.md"])
def test_a_path_that_is_none_of_the_harness_is_not_kept(cluster: Cluster, path: str) -> None:
    case = cluster.members.first()
    assert case is not None
    answers = [diagnosis_answer(quote(case, case.title), path=each) for each in (path, "")]
    diagnosis, _model = diagnose(cluster, *answers)
    assert diagnosis.path == ""


@pytest.mark.parametrize(
    "fields",
    [{"hypothesis": "a\0b"}, {"hypothesis": " \n "}, {"changes": ["x"] * 99}, {"refuted_by": "x" * 9_999}],
)
def test_texts_that_cannot_be_kept_are_repaired(cluster: Cluster, fields: dict[str, object]) -> None:
    case = cluster.members.first()
    assert case is not None
    bad, good = (diagnosis_answer(quote(case, case.title), **each) for each in (fields, {}))
    _diagnosis, model = diagnose(cluster, bad, good)
    assert len(model.asked) == 2


def test_the_name_of_a_cluster_is_one_line(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    diagnose(cluster, {**diagnosis_answer(quote(case, case.title)), "cluster_name": " a\n b "})
    cluster.refresh_from_db()
    assert cluster.name == "a b"


def test_an_exchange_is_kept_whatever_was_wrong_with_its_answers(cluster: Cluster) -> None:
    bad = diagnosis_answer({"case": "1", "turn": 0, "quote": "never \0 said"})
    with pytest.raises(ModelOutputError):
        diagnose(cluster, bad, bad)
    assert "\0" not in Exchange.objects.get().error


def test_whoever_asked_is_in_the_trail(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    diagnose(cluster, diagnosis_answer(quote(case, case.title)))
    assert Event.objects.get(verb="cluster.diagnosed").actor == DEV.name


def test_hypotheses_are_ranked_as_the_model_ranked_them(cluster: Cluster) -> None:
    first, second = cluster.members.order_by("pk")
    answer = diagnosis_answer(quote(first, first.title))
    answer["hypotheses"] += [
        hypothesis(quote(first, "没有说过"), hypothesis="invented"),
        hypothesis(
            quote(second, second.title), part="label", category="bad_label", path="", hypothesis="label"
        ),
    ]
    made = diagnose_cluster(DEV, cluster, NamedModel(Answers(answer), "m"))
    assert [(each.rank, each.part, each.category) for each in made] == [
        (1, "skill", "missing_instruction"),
        (2, "label", "bad_label"),
    ]
    assert {each.exchange_id for each in made} == {Exchange.objects.get().pk}
    with pytest.raises(LoopError, match="does not blame the harness"):
        check_draftable(made[1])
    check_draftable(made[0])


def test_wrong_turns_of_cases_that_were_not_shown_are_dropped(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    turns = [
        {"case": str(case.pk), "turn": 1},
        {"case": str(case.pk), "turn": 1},
        {"case": "999999", "turn": 1},
        {"case": str(case.pk), "turn": 40},
    ]
    diagnosis, _model = diagnose(cluster, diagnosis_answer(quote(case, case.title), first_wrong_turns=turns))
    assert diagnosis.first_wrong_turns == [{"case": case.pk, "turn": 1}]
    assert diagnosis.first_wrong_turn == 1


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


def test_a_diagnosis_without_a_true_quote_is_asked_for_again(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    false = diagnosis_answer(quote(case, "没有说过"))
    diagnosis, model = diagnose(cluster, false, diagnosis_answer(quote(case, case.title)))
    assert len(model.asked) == 2
    assert diagnosis.exchange is not None
    assert "none of the passages" in diagnosis.exchange.replies[0]["problem"]


def test_a_diagnosis_without_a_true_quote_is_refused(cluster: Cluster) -> None:
    case = cluster.members.first()
    assert case is not None
    false = diagnosis_answer(quote(case, "没有说过"), {"case": "x", "turn": 1, "quote": case.title})
    with pytest.raises(LoopError, match="none of the passages"):
        diagnose(cluster, false, false)
    assert not Diagnosis.objects.exists()
    assert "none of the passages" in Exchange.objects.get().error


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


def test_the_sample_is_of_open_members(harness: Harness) -> None:
    cluster = make_cluster(harness)
    made = [make_failure(harness, text, cluster=cluster) for text in ("价格多少", "几天能到", "有货吗")]
    move(made[1], CaseState.IGNORED, DEV)
    assert {case.pk for case in sample_members(cluster)} == {made[0].pk, made[2].pk}
