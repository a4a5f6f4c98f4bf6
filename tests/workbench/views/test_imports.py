import csv
import io
import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from evolution.models import Event, FailureCase, ImportProblem, ImportRun, Job, Source
from evolution.states import ImportState, JobState
from evolution.tasks.jobs import perform_job
from tests.evolution.intake import TAU_BENCH, needs_data
from tests.workbench.views.conftest import World

SETTINGS = {
    "format": "auto",
    "thresholds": "*<1",
    "errors_count": "on",
    "checks_count": "on",
    "feedback_count": "on",
    "verdict_count": "on",
    "unscored_count": "on",
}
HTMX = {"HX-Request": "true", "HX-Target": "results"}


def lines(*records: Any, name: str = "u.jsonl") -> SimpleUploadedFile:
    text = "\n".join(record if isinstance(record, str) else json.dumps(record) for record in records)
    return SimpleUploadedFile(name, text.encode())


def send(world: World, client: Client, *uploads: SimpleUploadedFile) -> ImportRun:
    client.post(world.url("imports/upload/"), {"uploads": list(uploads)})
    return ImportRun.objects.latest("pk")


def start(world: World, client: Client, run: ImportRun, **settings: str) -> ImportRun:
    """What the button does, and then a worker."""
    client.post(world.url(f"imports/{run.pk}/start/"), {**SETTINGS, **settings})
    for job in Job.objects.filter(kind="import", state=JobState.QUEUED):
        perform_job(job.pk)
    run.refresh_from_db()
    return run


def text_of(page: bytes) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page.decode()).split())


@needs_data
def test_an_upload_is_previewed_and_then_imported(world: World, developer: Client) -> None:
    records = json.loads(TAU_BENCH.read_text())[:30]
    run = send(world, developer, SimpleUploadedFile("airline.json", json.dumps(records).encode()))

    page = developer.get(world.url(f"imports/{run.pk}/"))
    assert page.context["preview"].formats == {"airline.json": "tau-bench"}
    assert page.context["preview"].read == 30
    assert not FailureCase.objects.filter(source="tau-bench").exists()

    run = start(world, developer, run)
    assert (run.state, run.read, run.new) == (ImportState.FINISHED, 30, page.context["preview"].taken)
    cases = developer.get(world.url(f"cases/?state=&imported={run.pk}")).context["page"]
    assert {case.source for case in cases} == {"tau-bench"}


def test_another_rule_shows_at_once_what_it_makes_of_the_records(world: World, developer: Client) -> None:
    run = send(world, developer, lines(*({"request": f"q{n}", "scores": {"r": n / 4}} for n in range(5))))
    address = world.url(f"imports/{run.pk}/preview/")

    strict = developer.post(address, SETTINGS)
    lax = developer.post(address, {**SETTINGS, "thresholds": "r<0.5"})
    everything = developer.post(address, {**SETTINGS, "everything": "on"})
    part = developer.post(address, SETTINGS, headers=HTMX).content.decode()

    assert [answer.context["preview"].taken for answer in (strict, lax, everything)] == [4, 2, 5]
    assert part.lstrip().startswith('<div id="results"')
    assert not FailureCase.objects.filter(source="jsonl").exists()


def test_scores_on_another_scale_than_the_rule_takes_are_pointed_out(world: World, developer: Client) -> None:
    table = "问题,评分,差评原因,电话\nq,1,慢,13812345678\nr,5,,13987654321\n"
    run = send(world, developer, SimpleUploadedFile("t.csv", table.encode("gb18030")))
    address = world.url(f"imports/{run.pk}/")
    shown = developer.get(address).context
    assert shown["preview"].large_scores == [("score", 5.0)]
    values = {column.name: column.values for column in shown["table"].columns}
    assert values["电话"] == ["[phone 1]", "[phone 2]"]
    fields = {column.name: column.field for column in shown["table"].columns}
    assert fields["差评原因"] == "symptom"

    said = developer.post(f"{address}preview/", {**SETTINGS, "thresholds": "score<3"}).context["preview"]
    assert (said.large_scores, said.taken) == ([], 1)


def test_an_import_is_booked_under_a_source_with_a_chinese_name(world: World, developer: Client) -> None:
    run = send(world, developer, lines({"request": "q"}))
    developer.post(world.url(f"imports/{run.pk}/start/"), {**SETTINGS, "source": "淘宝客服"})
    run.refresh_from_db()
    assert run.source
    assert developer.get(world.url("sources/淘宝客服/")).status_code == 200
    other = send(world, developer, lines({"request": "q"}))
    page = developer.post(world.url(f"imports/{other.pk}/preview/"), {**SETTINGS, "source": "a b"})
    assert "Booked under the source: " in page.content.decode()


def test_a_rule_that_is_none_is_told_and_nothing_starts(world: World, developer: Client) -> None:
    run = send(world, developer, lines({"request": "q"}))
    broken = {**SETTINGS, "thresholds": "r<<1"}

    page = developer.post(world.url(f"imports/{run.pk}/preview/"), broken, headers=HTMX)
    developer.post(world.url(f"imports/{run.pk}/start/"), broken)

    assert "r&lt;&lt;1" in page.content.decode()
    run.refresh_from_db()
    assert run.state == ImportState.PREVIEW


def test_columns_of_a_table_are_what_people_say(world: World, developer: Client) -> None:
    table = "wer;was;punkte\nann;how much;1\nben;when;4\n"
    run = send(world, developer, SimpleUploadedFile("t.csv", table.encode()))
    columns = {
        "name-0": "wer",
        "name-1": "was",
        "name-2": "punkte",
        "field-1": "request",
        "field-2": "scores",
    }

    before = developer.get(world.url(f"imports/{run.pk}/")).context
    after = developer.post(
        world.url(f"imports/{run.pk}/preview/"),
        {**SETTINGS, **columns, "thresholds": "punkte<3"},
    ).context

    assert [column.name for column in before["table"].columns] == ["wer", "was", "punkte"]
    assert before["table"].columns[1].values == ["how much", "when"]
    assert before["preview"].taken == 0
    assert [(row.title, row.is_taken) for row in after["preview"].records] == [
        ("how much", True),
        ("when", False),
    ]
    run = start(world, developer, run, **columns, thresholds="punkte<3", source="table-1", remember="on")
    assert (run.new, run.passed, run.source and run.source.name) == (1, 1, "table-1")
    case = FailureCase.objects.get(source="table-1")
    assert (case.scores, case.context) == ({"punkte": 1}, {"wer": "ann"})
    assert Source.objects.get(name="table-1").mapping == {"request": "was", "scores.punkte": "punkte"}


def test_what_is_said_of_columns_is_not_meant_for_other_files(world: World, developer: Client) -> None:
    table = SimpleUploadedFile("t.csv", b"was,request\nx,y\n")
    run = send(world, developer, table, lines({"request": "from json", "was": 5}))
    columns = {"name-0": "was", "name-1": "request", "field-0": "request", "field-1": ""}

    start(world, developer, run, **columns)

    assert set(FailureCase.objects.filter(import_run=run).values_list("title", flat=True)) == {
        "x",
        "from json",
    }


def test_a_field_is_one_column(world: World, developer: Client) -> None:
    run = send(world, developer, SimpleUploadedFile("t.csv", b"a,b\n1,2\n"))
    columns = {"name-0": "a", "name-1": "b", "field-0": "request", "field-1": "request"}

    page = developer.post(world.url(f"imports/{run.pk}/preview/"), {**SETTINGS, **columns}, headers=HTMX)

    assert "request can&#x27;t be both a and b" in page.content.decode()


def test_a_source_that_is_chosen_brings_its_settings(world: World, developer: Client) -> None:
    rule = {"thresholds": [{"name": "r", "sign": "<", "limit": 0.5}]}
    Source.objects.create(harness=world.harness, name="room", rule=rule, created_by="dev")
    run = send(world, developer, lines({"request": "q", "scores": {"r": 0.7}}))

    page = developer.post(world.url(f"imports/{run.pk}/preview/"), {**SETTINGS, "source": "room"})

    assert page.context["rule"]["thresholds"] == "r<0.5"
    assert page.context["preview"].taken == 0


def test_what_is_rejected_is_shown_in_place_and_as_a_table(world: World, developer: Client) -> None:
    run = send(world, developer, lines({"request": "q"}, '{"broken": ', name="=a.jsonl"))

    preview = developer.get(world.url(f"imports/{run.pk}/")).context["preview"]
    assert [(row.file, row.line) for row in preview.problems] == [("=a.jsonl", 2)]

    run = start(world, developer, run)
    page = text_of(developer.get(world.url(f"imports/{run.pk}/")).content)
    assert "=a.jsonl 2 cut off: the file ends" in page
    answer = developer.get(world.url(f"imports/{run.pk}/problems.csv"))
    rows = list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode("utf-8-sig"))))  # type: ignore[attr-defined]
    assert rows[0] == ["file", "line", "record", "reason"]
    assert rows[1][:2] == ["'=a.jsonl", "2"]
    assert len(rows) == 1 + ImportProblem.objects.filter(run=run).count()


def test_what_will_be_masked_is_masked_in_the_preview(world: World, developer: Client) -> None:
    run = send(world, developer, lines({"request": "call me at 13812345678", "symptom": "x"}))

    answer = developer.get(world.url(f"imports/{run.pk}/"))

    assert "13812345678" not in answer.content.decode()
    assert sum(answer.context["preview"].masked.values()) == 1


def test_a_file_that_cannot_be_read_is_told_in_place(world: World, developer: Client) -> None:
    run = send(
        world, developer, SimpleUploadedFile("x.json", b"\x00\xff not json"), SimpleUploadedFile("e", b"")
    )

    preview = developer.get(world.url(f"imports/{run.pk}/")).context["preview"]

    assert (preview.rejected, preview.taken) == (2, 0)
    assert start(world, developer, run).rejected == 2


def test_progress_is_followed_and_the_page_is_loaded_again_at_the_end(
    world: World, developer: Client
) -> None:
    run = send(world, developer, lines({"request": "q"}))
    developer.post(world.url(f"imports/{run.pk}/start/"), SETTINGS)
    headers = {"HX-Request": "true", "HX-Target": "progress"}

    waiting = developer.get(world.url(f"imports/{run.pk}/"), headers=headers)
    perform_job(Job.objects.get(kind="import").pk)
    done = developer.get(world.url(f"imports/{run.pk}/"), headers=headers)

    assert "every 1000ms" in waiting.content.decode()
    assert done.headers["HX-Refresh"] == "true"


def test_the_files_of_a_preview_are_thrown_away(world: World, developer: Client) -> None:
    run = send(world, developer, lines({"request": "q"}))

    developer.post(world.url(f"imports/{run.pk}/discard/"))

    assert not ImportRun.objects.filter(pk=run.pk).exists()
    assert Event.objects.filter(verb="importrun.discarded").exists()


@pytest.mark.parametrize("path", ["upload/", "{pk}/preview/", "{pk}/start/", "{pk}/resume/", "{pk}/discard/"])
def test_viewers_look_and_change_nothing(world: World, developer: Client, viewer: Client, path: str) -> None:
    run = send(world, developer, lines({"request": "q"}))

    answer = viewer.post(world.url("imports/" + path.format(pk=run.pk)), {**SETTINGS, "uploads": lines({})})

    assert answer.status_code == 403
    assert viewer.get(world.url("imports/")).status_code == 200
    assert viewer.get(world.url(f"imports/{run.pk}/")).status_code == 200
    assert set(ImportRun.objects.values_list("state", flat=True)) == {ImportState.PREVIEW}


def test_a_preview_is_not_gone_on_with(world: World, developer: Client) -> None:
    run = send(world, developer, lines({"request": "q"}))

    developer.post(world.url(f"imports/{run.pk}/resume/"))

    run.refresh_from_db()
    assert run.state == ImportState.PREVIEW
    assert not Job.objects.filter(kind="import").exists()


def test_an_upload_without_a_file_is_told(world: World, developer: Client) -> None:
    answer = developer.post(world.url("imports/upload/"), {}, follow=True)

    assert [message.level_tag for message in answer.context["messages"]] == ["error"]


def test_the_list_makes_as_many_queries_for_many_imports(
    world: World, developer: Client, django_assert_max_num_queries: Any
) -> None:
    ImportRun.objects.bulk_create(
        ImportRun(harness=world.harness, digest="", created_by="dev", files=[{"name": f"f{n}", "size": 1}])
        for n in range(60)
    )

    with django_assert_max_num_queries(12):
        page = developer.get(world.url("imports/"))

    assert len(page.context["page"]) == 50


def test_nothing_of_a_file_becomes_markup(world: World, developer: Client) -> None:
    evil = "<script>alert(1)</script>\u202e"
    run = send(
        world, developer, lines({"request": evil, "reply": evil, "scores": {evil: evil}}, name="<b>.jsonl")
    )

    page = developer.get(world.url(f"imports/{run.pk}/")).content.decode()

    assert "<script>alert" not in page
    assert "<b>.jsonl" not in page
    assert "\u202e" not in page
