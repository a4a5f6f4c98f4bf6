import json
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from evolution.models import FailureCase, Harness, ImportRun, Source
from tests.evolution.intake import TAU_BENCH, needs_data

pytestmark = pytest.mark.django_db


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """The object that the command prints; that it ends with status 4 when something was rejected is checked."""
    words = [str(argument) for argument in arguments]
    try:
        call_command("import_cases", *words, "--json")
        code = 0
    except SystemExit as ended:
        code = int(str(ended.code))
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert code == (4 if report["rejected"] else 0)
    return report


def figures(report: dict[str, Any]) -> dict[str, int]:
    return {name: value for name, value in report.items() if isinstance(value, int) and value}


@needs_data
def test_the_report_of_a_real_file_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, TAU_BENCH) == {
        "read": 200, "new": 116, "updated": 0, "duplicate": 0, "passed": 84, "rejected": 0,
        "problems": [], "masked": ImportRun.objects.get().masked, "formats": {TAU_BENCH.name: "tau-bench"},
        "left_out": [],
    }  # fmt: skip
    assert figures(run(capsys, TAU_BENCH)) == {"read": 200, "duplicate": 116, "passed": 84}
    assert set(FailureCase.objects.values_list("harness__name", flat=True)) == {"live_commerce"}


def test_problems_are_named(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"request": "a"}\nbroken\n')
    report = run(capsys, path)
    assert figures(report) == {"read": 2, "new": 1, "rejected": 1}
    (problem,) = report["problems"]
    assert (problem["file"], problem["line"]) == ("c.jsonl", 2)
    assert set(problem) == {"file", "line", "reason"}
    with pytest.raises(SystemExit):
        call_command("import_cases", str(path))
    assert "rejected: c.jsonl, line 2: broken JSON" in capsys.readouterr().err


def test_the_report_says_what_duplicates_are_and_which_files_were_left_out(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text('{"id": "1", "request": "a"}\n{"id": "2", "request": "a"}\n')
    (tmp_path / "b.jsonl").write_text('{"id": "3", "request": "a", "failed": false}\n')
    (tmp_path / "notes.md").write_text("notes")
    call_command("import_cases", str(tmp_path))
    said = capsys.readouterr().out
    assert "new 1, updated 0, duplicate 1, passed 1" in said
    assert "the same under another id, counted on its case" in said
    assert f"1 files ({tmp_path.name}/notes.md)" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("absent.jsonl",),
        ("c.jsonl", "--rule", "nonsense"),
        ("c.jsonl", "--mapping", "absent.json"),
        ("c.jsonl", "--mapping", "bad.json"),
        ("c.jsonl", "--source", "no name"),
        ("c.jsonl", "--harness", "nobody"),
    ],
)
def test_what_is_not_to_be_had_ends_with_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.jsonl").write_text('{"request": "a"}')
    (tmp_path / "bad.json").write_text('{"nonsense": 5}')
    with pytest.raises(CommandError) as caught:
        call_command("import_cases", *arguments)
    assert caught.value.returncode == 2
    assert not FailureCase.objects.exists()


def test_a_dry_run_says_the_same_and_changes_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": 1, "request": "a"}\nbroken\n{"id": 2, "request": "b", "failed": false}\n')
    tried = run(capsys, path, "--dry-run", "--source", "room")
    assert not FailureCase.objects.exists()
    assert not Source.objects.exists()
    assert run(capsys, path, "--source", "room") == tried


def test_a_dry_run_makes_no_harness(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"id": 1, "request": "a"}')
    before = set(Path(settings.REPOSITORIES_DIR).glob("*"))
    Harness.objects.all().delete()
    assert figures(run(capsys, path, "--dry-run")) == {"read": 1, "new": 1}
    assert not Harness.objects.exists()
    assert set(Path(settings.REPOSITORIES_DIR).glob("*")) == before


def test_rule_mapping_and_source_are_taken(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table, mapping = tmp_path / "t.csv", tmp_path / "m.json"
    table.write_text("was,punkte\nhow much,1\nwhen,4\n")
    mapping.write_text('{"request": "was", "scores.points": "punkte"}')
    report = run(capsys, table, "--mapping", mapping, "--rule", "points<3", "--source", "room")
    assert figures(report) == {"read": 2, "new": 1, "passed": 1}
    case = FailureCase.objects.get()
    assert (case.source, case.title, case.symptom) == ("room", "how much", "points 1")
    assert figures(run(capsys, table, "--mapping", mapping, "--all", "--source", "room")) == {
        "read": 2, "new": 1, "updated": 1,
    }  # fmt: skip


def test_failures_only_and_all_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(CommandError):
        call_command("import_cases", str(tmp_path), "--all", "--failures-only")


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
