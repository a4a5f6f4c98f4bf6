"""Imports in real processes, killed with SIGKILL, and several at once: nothing is lost, and nothing is doubled."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from pytest_django import Settings

from evolution.actions.imports import import_paths
from evolution.loop.cases import COUNTS
from evolution.models import CaseText, FailureCase, Harness, ImportProblem, ImportRun, Sighting
from evolution.states import ImportState
from tests.evolution.measured import DEV
from tests.evolution.racing import run_at_once
from tests.evolution.test_killed_worker import database_url

pytestmark = pytest.mark.django_db(transaction=True)

ROOT = Path(__file__).parents[2]
RECORDS = 6_000
PATIENCE = 90.0


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Every kind of record, all over the file."""
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(_line(number) for number in range(RECORDS)) + "\n")
    return path


def _line(number: int) -> str:
    if number % 100 == 50:
        return '{"broken": '
    record: dict[str, Any] = {"id": number, "request": f"question {number}", "reply": "r" * 500}
    if number % 10 == 1:
        record["failed"] = False
    if number % 10 == 2:
        # the same failure under many ids
        record["request"] = "the same"
    if number % 10 == 3:
        record["id"] = "one id"
    return json.dumps(record)


EXPECTED = {
    "read": RECORDS,
    "new": RECORDS - RECORDS // 100 - RECORDS // 10 - RECORDS // 10 + 1,
    "updated": 0,
    "duplicate": RECORDS // 10 - 1,
    "passed": RECORDS // 10,
    "rejected": RECORDS // 100,
}


def start(settings: Settings, path: Path) -> "subprocess.Popen[bytes]":
    environment = {
        **os.environ,
        "DATABASE_URL": database_url(),
        "REPOSITORIES_DIR": str(settings.REPOSITORIES_DIR),
        "IMPORTS_DIR": str(settings.IMPORTS_DIR),
    }
    command = [sys.executable, "manage.py", "import_cases", str(path), "--harness", "shop", "--json"]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def end(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    output, _nothing = process.communicate(timeout=PATIENCE)
    assert process.returncode == 4
    report: dict[str, Any] = json.loads(output)
    return report


def figures(run: ImportRun) -> dict[str, int]:
    return {name: getattr(run, name) for name in COUNTS}


def check_stored() -> None:
    """What is there is what one import leaves, however it came to be."""
    assert FailureCase.objects.count() == CaseText.objects.count() == EXPECTED["new"]
    assert Sighting.objects.count() == EXPECTED["duplicate"]
    assert FailureCase.objects.get(title="the same").count == RECORDS // 10
    lines = Counter(case["line"] for case in FailureCase.objects.values_list("place", flat=True))
    assert max(lines.values()) == 1


def test_an_import_that_is_killed_again_and_again_comes_to_the_same_in_the_end(
    harness: Harness, file: Path, settings: Settings
) -> None:
    for share in (4, 2):
        process = start(settings, file)
        _wait_until_read(RECORDS // share, process)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        run = ImportRun.objects.get()
        # Even now the sum is right, and what is counted is stored.
        assert run.read == sum(figures(run).values()) - run.read < RECORDS
        assert run.new == FailureCase.objects.count()
        assert run.rejected == ImportProblem.objects.count()
    report = end(start(settings, file))
    run = ImportRun.objects.get()
    assert (figures(run), run.state) == (EXPECTED, ImportState.FINISHED)
    assert {name: report[name] for name in COUNTS} == EXPECTED
    assert [problem["line"] for problem in report["problems"]] == list(range(51, RECORDS, 100))
    check_stored()


def _wait_until_read(count: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE
    while not ImportRun.objects.filter(read__gte=count).exists():
        assert process.poll() is None, "it ended before it could be killed"
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def test_the_same_file_twice_at_once_is_stored_once(harness: Harness, file: Path, settings: Settings) -> None:
    reports = [end(process) for process in [start(settings, file), start(settings, file)]]
    assert sum(report["new"] for report in reports) == EXPECTED["new"]
    assert [report["read"] for report in reports] == [RECORDS] * 2
    assert {report["rejected"] for report in reports} == {EXPECTED["rejected"]}
    check_stored()


def test_imports_of_different_files_at_once_do_not_disturb_each_other(
    harness: Harness, tmp_path: Path
) -> None:
    paths = [tmp_path / f"{name}.jsonl" for name in "abc"]
    for number, path in enumerate(paths):
        records = [{"id": f"{number}-{n}", "request": f"q {n % 700}", "reply": "r"} for n in range(1_200)]
        path.write_text("\n".join(json.dumps(record) for record in records))
    runs = run_at_once(*(lambda path=path: import_paths(DEV, harness, [path]) for path in paths))
    assert all(isinstance(run, ImportRun) for run in runs), runs
    assert [sum(getattr(run, name) for run in runs) for name in ("read", "new", "duplicate")] == [
        3600,
        700,
        2900,
    ]
    assert FailureCase.objects.count() == 700
    assert Sighting.objects.count() == 2900
    assert sum(FailureCase.objects.values_list("count", flat=True)) == 3600
    connections.close_all()
