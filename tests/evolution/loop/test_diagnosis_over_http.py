"""Diagnoses by a model server that answers well, wrongly, or not at all."""

import pytest
from pytest_django import Settings

from evolution.actions.diagnosis import start_diagnosis
from evolution.actions.harnesses import ensure_starter
from evolution.models import Cluster, Diagnosis, Exchange, Job
from evolution.tasks.jobs import perform_job
from tests.evolution.intake import make_cluster
from tests.evolution.measured import DEV
from tests.evolution.model_server import (
    Behaviour,
    ModelServer,
    answering,
    broken_json,
    changed,
    failing,
    good,
    model_server,
    refusing,
    saying,
    use_server,
)

pytestmark = pytest.mark.django_db(transaction=True)

SUBJECT = "DiagnosisOutput"


@pytest.fixture
def cluster() -> Cluster:
    harness = ensure_starter(DEV, "live_commerce")
    return make_cluster(harness, texts=("3号链接多少钱？", "几天能到货", "敏感肌能用吗"))


def ask(
    cluster: Cluster, server: ModelServer, settings: Settings, *script: Behaviour, model: str = ""
) -> Job:
    use_server(settings, server)
    # A server that refuses a schema is asked without one.
    for subject in (SUBJECT, "*"):
        server.script(subject, *script)
    job = start_diagnosis(DEV, cluster, model, enqueue=False)
    perform_job(job.pk)
    job.refresh_from_db()
    return job


def misquoting(count: int) -> Behaviour:
    """An answer that quotes what nobody said."""

    def misquote(answer: dict[str, object]) -> dict[str, object]:
        hypotheses = answer["hypotheses"]
        assert isinstance(hypotheses, list)
        for each in hypotheses[:count]:
            each["evidence"] = [{"case": "1", "turn": 0, "quote": "nobody said this"}]
        return answer

    return changed(misquote)


def test_a_good_answer_makes_diagnoses_whose_quotes_stand_in_the_cases(
    cluster: Cluster, settings: Settings
) -> None:
    with model_server() as server:
        job = ask(cluster, server, settings, good)
    made = Diagnosis.objects.filter(pk__in=job.result["diagnoses"])
    assert job.state == "done"
    exchange = made[0].exchange
    assert exchange is not None
    assert (exchange.job_id, exchange.prompt_tokens > 100, len(exchange.replies)) == (job.pk, True, 1)
    for diagnosis in made:
        for item in diagnosis.evidence:
            assert item["quote"] in cluster.members.get(pk=item["case"]).title


@pytest.mark.parametrize("first", [broken_json, misquoting(4), answering({"part": "weather"})])
def test_a_wrong_answer_is_repaired_once(cluster: Cluster, settings: Settings, first: Behaviour) -> None:
    with model_server() as server:
        job = ask(cluster, server, settings, first, good)
        assert len(server.asked(SUBJECT)) == 2
    assert job.state == "done"
    assert Exchange.objects.get().replies[0]["problem"]


@pytest.mark.parametrize(
    "script",
    [[broken_json], [misquoting(4)], [refusing], [saying("I can't help with that.")], [failing(400)]],
)
def test_what_comes_to_nothing_fails_with_its_reason_and_is_kept(
    cluster: Cluster, settings: Settings, script: list[Behaviour]
) -> None:
    with model_server() as server:
        job = ask(cluster, server, settings, *script)
    assert (job.state, Diagnosis.objects.count()) == ("failed", 0)
    exchange = Exchange.objects.get()
    assert exchange.error == job.message != ""
    assert exchange.shown["cases"]


def test_another_model_is_asked_by_its_name_and_both_answers_are_kept(
    cluster: Cluster, settings: Settings
) -> None:
    with model_server() as server:
        ask(cluster, server, settings, good)
        ask(cluster, server, settings, good, model="other-diagnoser")
    models = Exchange.objects.order_by("pk").values_list("model", flat=True)
    assert (len(models), models[1]) == (2, "other-diagnoser")
    assert set(Diagnosis.objects.values_list("model", flat=True)) == set(models)
