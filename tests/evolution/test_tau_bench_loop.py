"""Real failures of another model on a real policy, through the commands: diagnoses whose quotes stand in the records,
and proposals that git applies. The records are looked up in the file itself."""

import json
import subprocess
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any, get_args

import pytest
from django.conf import settings as django_settings
from django.core.management import call_command
from django.db import transaction
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from evolution.loop.repositories import open_repository
from evolution.models import Exchange, FailureCase, Harness
from evolution.prompts.diagnosis import NOT_THE_HARNESS, FaultKind
from tests.evolution.airline import NAME, find_record, write_airline
from tests.evolution.intake import TAU_BENCH, needs_data
from tests.evolution.model_server import model_server

# No test needs the database: that there is one is what the mark is for, and the world is built and gone before.
pytestmark = [needs_data, pytest.mark.django_db]


@dataclass(frozen=True)
class World:
    """What the commands printed, one after the other, and what they left behind."""

    checked: dict[str, Any]
    imported: dict[str, Any]
    clustered: dict[str, Any]
    diagnoses: list[dict[str, Any]]
    # those of one cluster, by a server over HTTP
    served: list[dict[str, Any]]
    proposals: list[dict[str, Any]]
    # what check_harness says of each proposal's commit
    found: dict[str, dict[str, Any]]
    # pk -> id in the file
    cases: dict[int, str]
    # what models were sent, and what of it they were shown
    sent: list[tuple[str, dict[str, Any]]]
    folder: Path
    repository: Path

    def quotes(self) -> list[dict[str, Any]]:
        return [item for each in (*self.diagnoses, *self.served) for item in each["evidence"]]


def run(*arguments: str) -> Any:
    out = StringIO()
    call_command(*arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture(scope="module")
def world(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path_factory: pytest.TempPathFactory
) -> World:
    home = tmp_path_factory.mktemp("airline")
    places = {"VAR_DIR": home, "REPOSITORIES_DIR": home / "r", "IMPORTS_DIR": home / "i"}
    with django_db_blocker.unblock(), override_settings(**places), transaction.atomic():
        built = build_world(home)
        transaction.set_rollback(True)
    return built


def build_world(home: Path) -> World:
    folder = write_airline(home / NAME)
    checked = run("check_harness", str(folder))
    run("add_harness", NAME, "--from", str(folder))
    mine = ("--harness", NAME)
    imported, clustered = run("import_cases", str(TAU_BENCH), *mine), run("cluster", *mine)
    diagnoses = run("diagnose", "--all", *mine)["diagnoses"]
    served = diagnose_over_http(diagnoses[0]["cluster"])
    proposals = [
        each for pk in choose(diagnoses) for each in run("draft", "--diagnosis", pk, *mine)["proposals"]
    ]
    return World(
        checked,
        imported,
        clustered,
        diagnoses,
        served,
        proposals,
        {each["commit"]: run("check_harness", NAME, "--ref", each["commit"]) for each in proposals},
        dict(FailureCase.objects.values_list("pk", "source_id")),
        [(json.dumps(each.request, ensure_ascii=False), each.shown) for each in Exchange.objects.all()],
        folder,
        open_repository(Harness.objects.get(name=NAME)).path,
    )


def choose(diagnoses: list[dict[str, Any]]) -> list[str]:
    """One diagnosis of each change that is told: the same rule is wanted by many clusters."""
    told = {"\n".join(each["changes"]): str(each["id"]) for each in diagnoses if each["changes"]}
    return list(told.values())


def diagnose_over_http(cluster: int) -> list[dict[str, Any]]:
    with model_server() as server, override_settings(LLM_BASE_URL=server.url):
        arguments = ("--cluster", str(cluster), "--model", "served-diagnoser", "--harness", NAME)
        diagnoses: list[dict[str, Any]] = run("diagnose", *arguments)["diagnoses"]
        assert len(server.asked("DiagnosisOutput")) == 1
    return diagnoses


def git(folder: Path, *arguments: str, text: str = "") -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_policy_and_tools_are_a_harness_without_a_problem(world: World) -> None:
    assert (world.checked["tools"], world.checked["problems"]) == (14, [])


def test_each_failure_is_taken_in_and_each_cluster_diagnosed(world: World) -> None:
    assert (world.imported["read"], world.imported["new"], world.clustered["cases"]) == (200, 116, 116)
    clusters = {each["cluster"] for each in world.diagnoses}
    assert clusters == set(range(1, world.clustered["clusters"] + 1))
    assert len(clusters) >= 10


def test_every_quote_stands_in_the_file_at_its_turn(world: World) -> None:
    assert len(world.quotes()) >= 2 * world.clustered["clusters"]
    assert all(item["verified"] for item in world.quotes())
    wrong = [
        item
        for item in world.quotes()
        if not find_record(world.cases[item["case"]]).says(item["quote"], item["turn"])
    ]
    assert wrong == []


def test_every_first_wrong_turn_is_one_of_the_agents_own(world: World) -> None:
    found = [item for each in world.diagnoses for item in each["first_wrong_turns"]]
    assert found
    for item in found:
        assert 1 <= item["turn"] < len(find_record(world.cases[item["case"]]).turns)


def test_each_hypothesis_blames_a_file_that_is_there_or_not_the_harness(world: World) -> None:
    for each in world.diagnoses:
        assert each["category"] in get_args(FaultKind)
        is_outside = each["part"] in NOT_THE_HARNESS
        assert is_outside == (each["path"] == "") == (each["changes"] == [])
        assert is_outside or (world.folder / each["path"]).is_file()


def test_no_model_is_told_the_task_or_its_right_answer(world: World) -> None:
    for sent, shown in world.sent:
        for case in shown["cases"]:
            record = find_record(world.cases[case])
            assert record.instruction not in sent
            assert not record.digest or record.digest not in sent


def test_what_is_shown_keeps_to_the_budget_and_whole_files_stand_there(world: World) -> None:
    asked = [(sent, shown) for sent, shown in world.sent if "budget" in shown]
    assert len(asked) == world.clustered["clusters"] + 1
    for sent, shown in asked:
        assert shown["tokens"] <= shown["budget"] == django_settings.DIAGNOSIS_TOKENS
        assert "prompts/policy.md" in shown["files"]
        assert "Basic economy flights cannot be modified." in sent


def test_each_change_that_is_told_is_drafted(world: World) -> None:
    assert len(world.proposals) >= 5
    for each in world.proposals:
        assert (each["state"], each["reason"]) == ("drafted", "")
        assert each["manifest"]["expected_fixes"]


def test_each_diff_is_one_that_git_applies(world: World) -> None:
    for each in world.proposals:
        patch = git(world.repository, "diff", each["base"], each["commit"])
        assert patch
        git(world.folder, "apply", "--check", "--whitespace=error", "-", text=patch)
        changed = git(world.repository, "diff", "--name-only", each["base"], each["commit"]).split()
        assert changed == [file["path"] for file in each["manifest"]["files"]]


def test_no_draft_adds_a_problem(world: World) -> None:
    assert [found["problems"] for found in world.found.values()] == [[]] * len(world.proposals)
