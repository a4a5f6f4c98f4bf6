import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evolution.actions.diagnosis import start_diagnosis
from evolution.actions.harnesses import ensure_starter
from evolution.actors import Actor
from evolution.demonstration import load_cases
from evolution.errors import LoopError
from evolution.loop.evaluation import newest_version
from evolution.loop.repositories import open_repository
from evolution.models import Cluster, Diagnosis, Exchange, Harness, Job, Proposal
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import DEV, make_harness

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return ensure_starter(DEV, "live_commerce")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    call_command(*arguments, "--json")
    return json.loads(capsys.readouterr().out)


def promise(harness: Harness, number: int) -> None:
    """A failure that the rehearsal model can make something of."""
    reply = f"亲，{number}号链接明天就能到，放心下单"
    make_failure(
        harness,
        f"{number}号链接什么时候能到",
        reply=reply,
        symptom="承诺了没有依据的送达时间",
        findings=[{"kind": "forbidden_claim", "text": "承诺次日送达：明天就能到"}],
        trajectory={"messages": [{"role": "assistant", "content": reply}], "skills_loaded": ["delivery_qa"]},
    )


DIAGNOSIS = {
    *("id", "cluster", "rank", "category", "part", "path", "hypothesis", "confidence", "evidence"),
    *("first_wrong_turns", "changes", "refuted_by", "model", "exchange", "cost", "seconds"),
}


def test_from_failures_to_a_branch_without_a_worker(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(1, 6):
        promise(harness, number)
    figures = run(capsys, "cluster")
    assert figures == {"cases": 5, "clusters": figures["clusters"], "unclustered": figures["unclustered"]}
    cluster = make_cluster(harness, 99)
    harness.failures.update(cluster=cluster, strength=1.0)
    (diagnosis,) = run(capsys, "diagnose", "--cluster", "99")["diagnoses"]
    assert (diagnosis["cluster"], set(diagnosis)) == (99, DIAGNOSIS)
    assert {tuple(item) for item in diagnosis["evidence"]} == {("case", "turn", "quote", "verified")}
    (proposal,) = run(capsys, "draft")["proposals"]
    assert set(proposal) == {
        *("id", "branch", "commit", "base", "title", "state", "diagnosis", "cluster", "model", "manifest"),
        *("cost", "seconds", "reason"),
    }
    assert (proposal["state"], proposal["cluster"], proposal["model"]) == ("drafted", 99, "rehearsal-editor")
    assert open_repository(harness).resolve(proposal["branch"]) == proposal["commit"]
    assert run(capsys, "draft") == {"proposals": []}
    assert Proposal.objects.count() == 1


def test_the_likeliest_hypothesis_of_the_newest_answer_is_drafted(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = make_cluster(harness, 7, ("几天能到",))
    rows = [("knowledge", 1, "new"), ("skill", 2, "new"), ("prompt", 3, "new"), ("skill", 1, "old")]
    answers = {name: Exchange.objects.create(harness=harness, purpose="diagnosis") for name in ("old", "new")}
    for part, rank, answer in reversed(rows):
        Diagnosis.objects.create(
            harness=harness, cluster=cluster, part=part, rank=rank, exchange=answers[answer]
        )
    with pytest.raises(CommandError):
        call_command("draft")
    drafted = Proposal.objects.get()
    assert drafted.diagnosis is not None
    assert (drafted.diagnosis.part, drafted.diagnosis.rank) == ("skill", 2)


def test_a_draft_that_came_to_nothing_is_told_with_its_reason(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = make_cluster(harness, 7, ("几天能到",))
    evidence = [{"case": cluster.members.get().pk, "turn": 0, "quote": "几天能到", "verified": True}]
    made = Diagnosis.objects.create(
        harness=harness, cluster=cluster, part="skill", category="other", hypothesis="h", evidence=evidence
    )
    with pytest.raises(CommandError, match="nothing to change"):
        call_command("draft", "--diagnosis", str(made.pk), "--json")
    (proposal,) = json.loads(capsys.readouterr().out)["proposals"]
    assert (proposal["state"], proposal["commit"]) == ("failed", "")
    assert "nothing to change" in proposal["reason"]


@pytest.mark.parametrize("command", ["diagnose", "draft"])
def test_a_model_that_nobody_serves_is_refused_before_anything_is_begun(
    harness: Harness, command: str
) -> None:
    cluster = make_cluster(harness, 7, ("几天能到",))
    made = Diagnosis.objects.create(harness=harness, cluster=cluster, part="skill", category="other")
    which = ("--cluster", "7") if command == "diagnose" else ("--diagnosis", str(made.pk))
    with pytest.raises(CommandError, match=r"no endpoint can be asked for no-such-model; .*: rehearsal-"):
        call_command(command, *which, "--model", "no-such-model")
    assert not Job.objects.exists()
    assert not Proposal.objects.exists()


def test_a_diagnosis_is_printed_with_what_it_takes_to_draft_it(
    harness: Harness, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = make_cluster(harness, 7, ("几天能到",))
    promise(harness, 1)
    harness.failures.update(cluster=cluster, strength=1.0)
    told = say(capsys, "diagnose", "--cluster", "7")
    made = Diagnosis.objects.get(rank=1)
    assert made.exchange is not None
    assert f"exchange {made.exchange_id}, {made.exchange.seconds:.1f} s, 0.0000 " in told
    assert f"diagnosis {made.pk}: 1. {made.part} {made.path}, {made.category}, confidence " in told
    drafting = f"draft --diagnosis {made.pk}"
    assert f"manage.py {drafting}\n" in told
    assert f"(diagnosis {made.pk}, rehearsal-editor, " in say(capsys, *drafting.split())


def test_what_was_made_is_told_though_another_was_refused(
    harness: Harness, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (make_cluster(harness, number) for number in (7, 8))
    promise(harness, 1)
    harness.failures.update(cluster=first, strength=1.0)
    make_failure(harness, "别的问题", cluster=second, strength=1.0)

    def refuse_second(actor: Actor, cluster: Cluster, *rest: Any, **options: Any) -> Job:
        if cluster == second:
            # As an action does that was too late.
            raise LoopError("somebody has ignored it meanwhile")
        return start_diagnosis(actor, cluster, *rest, **options)

    monkeypatch.setattr("evolution.management.commands.diagnose.start_diagnosis", refuse_second)
    with pytest.raises(CommandError, match="ignored it meanwhile"):
        call_command("diagnose", "--json")
    told = json.loads(capsys.readouterr().out)["diagnoses"]
    assert {each["cluster"] for each in told} == {7}


def test_no_failures_are_no_clusters(harness: Harness, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "cluster") == {"cases": 0, "clusters": 0, "unclustered": 0}
    assert run(capsys, "diagnose") == {"diagnoses": []}


def test_what_is_not_there_is_an_error(harness: Harness) -> None:
    for arguments in (("diagnose", "--cluster", "5"), ("draft", "--diagnosis", "5")):
        with pytest.raises(CommandError, match="has no"):
            call_command(*arguments)


def test_a_diagnosis_that_came_to_nothing_ends_with_an_error(harness: Harness) -> None:
    make_cluster(harness, 3)
    with pytest.raises(CommandError, match="no open failure"):
        call_command("diagnose", "--cluster", "3")
    assert Cluster.objects.get().state == "new"


def test_import_dataset_makes_one_version_of_the_same_cases(
    harness: Harness, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(asdict(case)) for case in load_cases()[:3]), "utf-8")
    figures = [run(capsys, "import_dataset", str(path)) for _ in range(2)]
    assert figures == [{"dataset": "mine", "version": 1, "cases": 3}] * 2
    assert harness.datasets.get().versions.get().cases.count() == 3


def say(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    capsys.readouterr()
    call_command(*arguments)
    return capsys.readouterr().out


@pytest.mark.usefixtures("harness")
def test_commands_with_nothing_to_do_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert "nothing to diagnose" in say(capsys, "diagnose", "--all")
    assert "nothing to draft" in say(capsys, "draft", "--all")
    assert say(capsys, "cluster") == "0 open cases: 0 clusters, 0 unclustered\n"


@pytest.mark.usefixtures("harness")
def test_one_thing_is_said_in_the_singular(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(json.dumps(asdict(load_cases()[0])), "utf-8")
    assert say(capsys, "import_dataset", str(path)) == "mine v1: 1 case for live_commerce\n"


def test_a_harness_without_a_dataset_is_told_so_without_a_hole() -> None:
    harness = make_harness()
    with pytest.raises(LoopError, match="has no dataset; import one first"):
        newest_version(harness)
    with pytest.raises(LoopError, match="has no dataset other; import one first"):
        newest_version(harness, "other")
