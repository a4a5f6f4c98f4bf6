import gzip
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from evolution.actions.imports import (
    count_import,
    discard_import,
    ensure_source,
    import_paths,
    options_for,
    remember_settings,
    resume_import,
    stage_uploads,
    start_import,
)
from evolution.actions.sources import create_source
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import BrokenInput, LoopError
from evolution.loop.cases import COUNTS
from evolution.loop.failure_rules import parse_rule
from evolution.loop.imports import ImportOptions
from evolution.models import (
    CaseText,
    Event,
    FailureCase,
    Harness,
    ImportProblem,
    ImportRun,
    Job,
    MaskingRule,
    Source,
)
from evolution.states import CaseState, ImportState, JobState
from evolution.tasks.imports import remove_leftovers
from evolution.tasks.jobs import perform_job
from tests.evolution.intake import TAU_BENCH, make_cluster, needs_data
from tests.evolution.measured import DEV, VIEWER

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def write(path: Path, *records: Any) -> Path:
    path.write_text("\n".join(r if isinstance(r, str) else json.dumps(r) for r in records) + "\n")
    return path


def counts(run: ImportRun) -> dict[str, int]:
    """The figures that are not 0; that they add up is checked each time."""
    run.refresh_from_db()
    figures = {name: getattr(run, name) for name in COUNTS}
    assert figures["read"] == sum(figures.values()) - figures["read"]
    return {name: value for name, value in figures.items() if value}


def request(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": number, "request": f"question {number}", "reply": f"reply {number}", **fields}


def test_each_record_ends_as_one_of_five(harness: Harness, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", request(1), request(2, failed=False), "broken", request(3))
    run = import_paths(DEV, harness, [path])
    assert counts(run) == {"read": 4, "new": 2, "passed": 1, "rejected": 1}
    assert run.state == ImportState.FINISHED
    assert run.formats == {"c.jsonl": "jsonl"}
    problem = ImportProblem.objects.get()
    assert (problem.file, problem.line) == ("c.jsonl", 3)
    assert Event.objects.get(verb="harness.cases_imported").data["new"] == 2
    assert FailureCase.objects.get(source_id="3").place == {"file": "c.jsonl", "line": 4}
    assert CaseText.objects.count() == 2


@needs_data
def test_a_real_file_twice(harness: Harness) -> None:
    assert counts(import_paths(DEV, harness, [TAU_BENCH])) == {"read": 200, "new": 116, "passed": 84}
    before = list(FailureCase.objects.values_list("pk", "updated_at"))
    assert counts(import_paths(DEV, harness, [TAU_BENCH])) == {"read": 200, "duplicate": 116, "passed": 84}
    assert list(FailureCase.objects.values_list("pk", "updated_at")) == before


def test_importing_again_changes_nothing_whatever_is_in_it(harness: Harness, tmp_path: Path) -> None:
    odd = [
        request(1, reply="call 13812345678 or +86 139 1234 5678"),
        request(2, context={"n": 12345678901234567890123, "f": 0.1234567890123456789, "z": -0.0, "e": 1e22}),
        request(2, reply="the id again"),
        request(3, happened_at="2024-06-01T12:00:00+08:00", tags=["a", "b", "a"]),
        request(4, errors=["boom"], feedback=[{"name": "thumbs", "value": "down"}]),
        {"request": "without an id"},
        {"request": "without an id"},
    ]
    path = write(tmp_path / "c.jsonl", *odd)
    first = import_paths(DEV, harness, [path])
    stored = list(FailureCase.objects.order_by("pk").values("source_id", "count", "updated_at"))
    again = import_paths(DEV, harness, [path])
    assert counts(first) == {"read": 7, "new": 6, "duplicate": 1}
    assert counts(again) == {"read": 7, "duplicate": 7}
    assert list(FailureCase.objects.order_by("pk").values("source_id", "count", "updated_at")) == stored
    assert FailureCase.objects.get(title="without an id").count == 2


def test_secrets_and_phones_never_reach_the_database(harness: Harness, tmp_path: Path) -> None:
    key, phone = "sk-proj-abcdefghijklmnopqrstuvwx1234567890", "13812345678"
    record = request(1, reply=f"key {key}, phone {phone}", errors=[f"no {key}"], tags=[phone])
    path = write(tmp_path / f"{phone}.jsonl", {**record, "id": phone}, '{"request": "a", "id": [' + phone)
    run = import_paths(DEV, harness, [path])
    everything = json.dumps(
        [list(model.objects.values()) for model in (FailureCase, ImportRun, ImportProblem, Event)]
        + list(CaseText.objects.values_list("text", flat=True)),
        default=str,
    )
    assert key not in everything
    assert phone not in everything
    assert counts(run) == {"read": 2, "new": 1, "rejected": 1}
    assert sum(run.masked.values()) >= 3
    assert FailureCase.objects.get().masked == run.masked


def test_another_rule_makes_failures_of_what_had_passed(harness: Harness, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", *(request(n, scores={"reward": n / 4}) for n in range(5)))
    strict, lax = (ImportOptions(rule=parse_rule(f"reward<{limit}")) for limit in (1, 0.5))
    assert counts(import_paths(DEV, harness, [path], lax)) == {"read": 5, "new": 2, "passed": 3}
    assert counts(import_paths(DEV, harness, [path], strict)) == {
        "read": 5, "new": 2, "duplicate": 2, "passed": 1,
    }  # fmt: skip
    assert FailureCase.objects.get(source_id="1").symptom == "reward 0.25"
    assert FailureCase.objects.get(source_id="1").score == 0.25


def test_an_update_keeps_what_people_did(harness: Harness, tmp_path: Path) -> None:
    import_paths(DEV, harness, [write(tmp_path / "c.jsonl", request(1), request(2))])
    cluster = make_cluster(harness)
    FailureCase.objects.update(
        tags=["mine"], state=CaseState.IGNORED, note="known", embedded_text="x", cluster=cluster
    )
    FailureCase.objects.filter(source_id="2").update(is_pinned=True)
    run = import_paths(
        DEV, harness, [write(tmp_path / "c.jsonl", request(1, reply="b"), request(2, reply="b"))]
    )
    assert counts(run) == {"read": 2, "updated": 2}
    one, two = FailureCase.objects.order_by("source_id")
    assert (one.tags, one.state, one.note, one.reply) == (["mine"], CaseState.IGNORED, "known", "b")
    assert (one.embedded_text, one.cluster, two.cluster) == ("", None, cluster)


def test_the_same_id_in_two_sources_is_two_cases(harness: Harness, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", request(1))
    other = write(tmp_path / "d.jsonl", request(1, reply="another"))
    for name, file in (("one", path), ("two", other)):
        import_paths(DEV, harness, [file], source=ensure_source(DEV, harness, name))
    assert set(FailureCase.objects.values_list("source", "source_id")) == {("one", "1"), ("two", "1")}


def test_a_record_that_the_database_refuses_costs_no_other(harness: Harness, tmp_path: Path) -> None:
    deep: Any = "x"
    for _ in range(90):
        deep = [deep]
    records = [request(n) for n in range(20)]
    records[7]["reply"] = "a" * 1_100_000
    records[7]["symptom"] = "b"
    records[8]["context"] = {"deep": deep}
    run = import_paths(DEV, harness, [write(tmp_path / "c.jsonl", *records)])
    assert counts(run)["read"] == 20
    assert FailureCase.objects.count() == counts(run)["new"] >= 18


def test_folders_archives_and_several_files_are_one_import(harness: Harness, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    write(folder / "a.jsonl", request(1))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress(json.dumps(request(2)).encode()))
    other = write(tmp_path / "c.jsonl", request(3))
    run = import_paths(DEV, harness, [folder, other])
    assert counts(run) == {"read": 3, "new": 3}
    assert len(run.formats) == 3


def test_what_is_not_there_stops_the_import_before_it_begins(harness: Harness, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", request(1))
    with pytest.raises(BrokenInput, match="can't be opened"):
        import_paths(DEV, harness, [path, tmp_path / "absent.json"])
    with pytest.raises(BrokenInput, match="no format"):
        import_paths(DEV, harness, [path], ImportOptions(format="nonsense"))
    assert not FailureCase.objects.exists()
    assert not ImportRun.objects.exists()


def test_a_dry_run_counts_what_an_import_does_and_changes_nothing(harness: Harness, tmp_path: Path) -> None:
    path = write(tmp_path / "c.jsonl", request(1), request(2), request(1), "broken")
    import_paths(DEV, harness, [write(tmp_path / "d.jsonl", request(2))])
    before = (FailureCase.objects.count(), Event.objects.count(), ImportRun.objects.count())
    tried, problems = count_import(DEV, harness, [path])
    assert (FailureCase.objects.count(), Event.objects.count(), ImportRun.objects.count()) == before
    figures = {name: getattr(tried, name) for name in COUNTS}
    assert [problem["line"] for problem in problems] == [4]
    done = import_paths(DEV, harness, [path])
    assert figures == {name: getattr(done, name) for name in COUNTS}


def test_the_audit_trail_names_who_started_an_import(harness: Harness) -> None:
    run = stage_uploads(DEV, harness, [SimpleUploadedFile("a.jsonl", json.dumps(request(1)).encode())])
    other = Actor("somebody else", Role.DEVELOPER)
    perform_job(start_import(other, run, ImportOptions()).pk)
    assert Event.objects.get(verb="harness.cases_imported").actor == "somebody else"


def test_a_dry_run_counts_updates_and_sources_as_the_import_does(harness: Harness, tmp_path: Path) -> None:
    import_paths(DEV, harness, [write(tmp_path / "old.jsonl", request(1), request(2))])
    path = write(tmp_path / "new.jsonl", {**request(1), "reply": "other"}, request(3), request(2))
    for name in ("", "room"):
        tried, _problems = count_import(DEV, harness, [path], source_name=name)
        assert not Source.objects.filter(name=name).exists()
        source = ensure_source(DEV, harness, name) if name else None
        done = import_paths(DEV, harness, [path], source=source)
        assert {each: getattr(tried, each) for each in COUNTS} == {
            each: getattr(done, each) for each in COUNTS
        }
    with pytest.raises(LoopError):
        count_import(DEV, harness, [path], source_name="no name")


def test_viewers_can_not_import(harness: Harness, tmp_path: Path) -> None:
    with pytest.raises(NotAllowed):
        import_paths(VIEWER, harness, [write(tmp_path / "c.jsonl", request(1))])
    with pytest.raises(NotAllowed):
        stage_uploads(VIEWER, harness, [SimpleUploadedFile("a", b"x")])


@pytest.mark.parametrize(
    "name", ["", "a b", "x" * 65, "../x", "a\0", "evaluation", "create", "13812345678", "淘宝-13812345678"]
)
def test_no_source_is_made_with_a_name_that_it_can_not_have(harness: Harness, name: str) -> None:
    with pytest.raises(LoopError):
        ensure_source(DEV, harness, name)
    with pytest.raises(LoopError):
        create_source(DEV, harness, name)
    assert not Source.objects.exists()


@pytest.mark.parametrize("name", ["room-3", "a--b", "_x", "-x", "淘宝客服", "A1"])
def test_a_source_has_its_name_whoever_makes_it(harness: Harness, name: str) -> None:
    assert create_source(DEV, harness, name)[0] == ensure_source(DEV, harness, name)


def test_a_pipe_is_read(harness: Harness, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    content = json.dumps(request(1)) + "\n" + json.dumps(request(2))
    with ThreadPoolExecutor() as pool:
        pool.submit(pipe.write_text, content)
        run = import_paths(DEV, harness, [pipe])
    assert counts(run) == {"read": 2, "new": 2}
    assert [file["name"] for file in run.files] == ["pipe"]


def test_files_that_hold_no_records_are_named(harness: Harness, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    write(folder / "a.bak", request(1))
    (folder / "13812345678.md").write_text("what this is")
    run = import_paths(DEV, harness, [folder])
    assert counts(run) == {"read": 1, "new": 1}
    run.refresh_from_db()
    assert run.left_out == {"count": 1, "names": ["in/[phone 1].md"]}


def test_nothing_that_is_masked_is_left_of_what_is_too_long(harness: Harness, tmp_path: Path) -> None:
    long = "x" * 112 + " 13812345678 " + "y" * 100
    import_paths(DEV, harness, [write(tmp_path / "a.jsonl", {"id": long, "request": "q"})])
    case = FailureCase.objects.get()
    assert "138" not in case.source_id
    assert len(case.source_id) <= 200


def test_source_and_version_are_masked(harness: Harness, tmp_path: Path) -> None:
    secret = "sk-proj-" + "abcdefghijkl1234567890"
    record = request(1, source=secret, harness_commit="AKIA" + "IOSFODNN7EXAMPLE")
    run = import_paths(DEV, harness, [write(tmp_path / "a.jsonl", record)])
    case = FailureCase.objects.get()
    assert case.source.startswith("[api-key ~")
    assert case.harness_commit.startswith("[aws-key ~")
    run.refresh_from_db()
    assert run.masked == {"api-key": 1, "aws-key": 1}
    assert counts(import_paths(DEV, harness, [tmp_path / "a.jsonl"])) == {"read": 1, "duplicate": 1}


def test_a_source_remembers_how_its_files_are_read(harness: Harness) -> None:
    source = ensure_source(DEV, harness, "room-3")
    wanted = ImportOptions(format="csv", mapping={"request": "q"}, rule=parse_rule("score<3"))
    remember_settings(DEV, source, wanted)
    assert options_for(ensure_source(DEV, harness, "room-3")) == wanted
    assert options_for(source, rule=parse_rule("errors")).rule == parse_rule("errors")
    assert not options_for(source, only_failures=False).only_failures


def upload(*records: Any, name: str = "u.jsonl") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, "\n".join(json.dumps(record) for record in records).encode())


def staged() -> list[Path]:
    root = Path(settings.IMPORTS_DIR)
    return sorted(root.iterdir()) if root.is_dir() else []


def test_uploads_wait_and_are_imported_by_a_worker(harness: Harness) -> None:
    before = len(staged())
    run = stage_uploads(DEV, harness, [upload(request(1)), upload(request(2), name="../../x\x00/v.jsonl")])
    assert (run.state, [file["name"] for file in run.files]) == (ImportState.PREVIEW, ["u.jsonl", "v.jsonl"])
    assert len(staged()) == before + 1
    job = start_import(DEV, run, ImportOptions())
    perform_job(job.pk)
    assert counts(run) == {"read": 2, "new": 2}
    assert len(staged()) == before
    assert FailureCase.objects.filter(import_run=run).count() == 2
    assert Job.objects.get().state == JobState.DONE


def test_an_import_that_failed_says_why_and_is_gone_on_with(harness: Harness, settings: Any) -> None:
    run = stage_uploads(DEV, harness, [upload(request(1))])
    job = start_import(DEV, run, ImportOptions())
    place = settings.IMPORTS_DIR
    settings.IMPORTS_DIR = place / "elsewhere"
    perform_job(job.pk)
    run.refresh_from_db()
    assert (run.state, "upload it again" in run.message) == (ImportState.FAILED, True)
    settings.IMPORTS_DIR = place
    perform_job(resume_import(DEV, run).pk)
    assert counts(run) == {"read": 1, "new": 1}
    assert (run.state, run.message) == (ImportState.FINISHED, "")


def test_uploads_are_thrown_away(harness: Harness, django_capture_on_commit_callbacks: Any) -> None:
    before = staged()
    run = stage_uploads(DEV, harness, [upload(request(1))])
    with django_capture_on_commit_callbacks(execute=True):
        discard_import(DEV, run)
    assert not ImportRun.objects.exists()
    assert staged() == before


def test_an_import_that_began_is_not_thrown_away(harness: Harness) -> None:
    run = stage_uploads(DEV, harness, [upload(request(1))])
    start_import(DEV, run, ImportOptions())
    with pytest.raises(LoopError):
        discard_import(DEV, run)


def test_leftovers_of_uploads_are_cleaned(harness: Harness) -> None:
    old, new = (stage_uploads(DEV, harness, [upload(request(n))]) for n in (1, 2))
    ImportRun.objects.filter(pk=old.pk).update(created_at=timezone.now() - timedelta(days=2))
    lost = Path(settings.IMPORTS_DIR) / "lost"
    lost.mkdir()
    before = time.time() - 2 * 86_400
    os.utime(lost, (before, before))
    remove_leftovers()
    assert list(ImportRun.objects.all()) == [new]
    assert not lost.exists()
    assert Path(settings.IMPORTS_DIR, new.files[0]["path"]).is_file()
    assert not Path(settings.IMPORTS_DIR, old.files[0]["path"]).exists()


def test_a_masking_rule_that_people_made_holds_at_once(harness: Harness, tmp_path: Path) -> None:
    MaskingRule.objects.create(name="room", pattern=r"room-\d+", label="room", updated_by="ops")
    import_paths(DEV, harness, [write(tmp_path / "c.jsonl", request(1, reply="see room-17"))])
    assert FailureCase.objects.get().reply == "see [room 1]"
