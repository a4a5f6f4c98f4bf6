import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from evolution.models import FailureCase, Harness
from tests.evolution.intake import TAU_BENCH, needs_data

pytestmark = pytest.mark.django_db


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    call_command("import_cases", *(str(argument) for argument in arguments))
    return capsys.readouterr().out


@needs_data
def test_the_report_of_a_real_file_twice(capsys: pytest.CaptureFixture[str]) -> None:
    first = json.loads(run(capsys, TAU_BENCH, "--json"))
    again = json.loads(run(capsys, TAU_BENCH, "--json"))
    assert first == {"read": 200, "new": 116, "duplicate": 0, "updated": 0, "passed": 84, "rejected": 0}
    assert again == {"read": 200, "new": 0, "duplicate": 116, "updated": 0, "passed": 84, "rejected": 0}
    assert set(FailureCase.objects.values_list("harness__name", flat=True)) == {"live_commerce"}


def test_problems_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"request": "a"}\nbroken\n')
    report = json.loads(run(capsys, path, "--json"))
    assert (report["new"], report["rejected"]) == (1, 1)
    assert report["problems"][0].startswith("c.jsonl, line 2: broken JSON")
    call_command("import_cases", str(path))
    assert "rejected: c.jsonl, line 2" in capsys.readouterr().err


def test_a_broken_file_ends_with_status_1(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text('[{"request": "a"},')
    with pytest.raises(CommandError, match=r"c\.json, line 1") as caught:
        call_command("import_cases", str(path))
    assert caught.value.returncode == 1
    assert not FailureCase.objects.exists()


def test_an_unknown_harness_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="no harness nobody"):
        call_command("import_cases", str(tmp_path), "--harness", "nobody")


def test_harnesses_come_from_starters_and_folders(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    call_command("add_harness", "mine", "--starter", "live_commerce")
    (tmp_path / "harness.yaml").write_text("format: 1\nname: x\nkind: judge\n")
    call_command("add_harness", "yours", "--from", str(tmp_path))
    assert dict(Harness.objects.values_list("name", "kind")) == {
        "judge": "judge",
        "mine": "agent",
        "yours": "judge",
    }
    assert Harness.objects.get(name="mine").judge == Harness.objects.get(name="judge")
    assert "harness.yaml:1: error schema" in capsys.readouterr().err
