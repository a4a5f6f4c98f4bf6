import json
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from evolution.actions.cases import ignore_case, import_failures, reopen_case, take_failures
from evolution.actors import NotAllowed
from evolution.errors import BrokenInput, LoopError
from evolution.models import Event, FailureCase, Harness
from evolution.states import CaseState
from tests.evolution.intake import make_failure
from tests.evolution.measured import DEV, VIEWER, make_evaluation, make_harness

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def upload(*lines: object, name: str = "u.jsonl") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, "\n".join(json.dumps(line) for line in lines).encode())


def test_uploads_and_paths_are_imported_alike(harness: Harness, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"id": 1, "request": "a"}\n{"id": 2, "request": ""}\n')
    report = import_failures(DEV, harness, [path, upload({"id": 3, "request": "b", "failed": False})])
    assert (report.read, report.new, report.passed, report.rejected) == (3, 1, 1, 1)
    assert report.problems == ["p.jsonl, line 2: `request` has no danmaku with a text"]
    assert Event.objects.get(verb="harness.cases_imported").data["new"] == 1


def test_a_file_that_cannot_be_read_stops_the_whole_import(harness: Harness, tmp_path: Path) -> None:
    with pytest.raises(BrokenInput, match="can't be opened"):
        import_failures(DEV, harness, [upload({"request": "a"}), tmp_path / "absent.json"])
    assert not FailureCase.objects.exists()
    with pytest.raises(BrokenInput, match="folder"):
        import_failures(DEV, harness, [tmp_path])


def test_a_dry_run_says_what_would_happen(harness: Harness) -> None:
    report = import_failures(DEV, harness, [upload({"request": "a"})], dry_run=True)
    assert report.new == 1
    assert not FailureCase.objects.exists()
    assert not Event.objects.exists()


def test_what_passed_is_taken_on_request(harness: Harness) -> None:
    passed = upload({"request": "a", "failed": False})
    assert import_failures(DEV, harness, [passed], only_failures=False).new == 1


def test_viewers_can_not_import(harness: Harness) -> None:
    with pytest.raises(NotAllowed):
        import_failures(VIEWER, harness, [upload({"request": "a"})])


def test_failures_are_taken_when_the_evaluation_is_finished() -> None:
    with pytest.raises(LoopError, match="wait until"):
        take_failures(DEV, make_evaluation(make_harness()))


def test_a_case_is_put_aside_with_a_reason_and_taken_back(harness: Harness) -> None:
    case = make_failure(harness)
    for _ in range(2):
        ignore_case(DEV, case, "测试流量")
    case.refresh_from_db()
    assert (case.state, case.note) == (CaseState.IGNORED, "测试流量")
    assert Event.objects.filter(verb="failurecase.ignored").count() == 1
    reopen_case(DEV, case)
    assert FailureCase.objects.get().state == CaseState.OPEN
