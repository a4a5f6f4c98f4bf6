import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evolution.adapters.formats.detect import read_file
from evolution.loop.case_batches import reopen_seen_again
from evolution.loop.cases import ImportReport, store_records
from evolution.loop.evaluation import create_evaluation
from evolution.loop.masking import current_masker
from evolution.loop.taken_failures import take_failures
from evolution.models import Evaluation, FailureCase, Harness, Sighting
from evolution.states import CaseState
from evolution.transitions import move
from tests.evolution.intake import TAU_BENCH, make_record, needs_data, store
from tests.evolution.measured import DEV, make_case, make_evaluation, make_harness, make_version, outage, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


@needs_data
def test_the_same_file_twice_adds_nothing(harness: Harness) -> None:
    reports = [ImportReport(), ImportReport()]
    for report in reports:
        store_records(DEV, harness, read_file(TAU_BENCH), report, masker=current_masker())
    figures = {"read": 200, "new": 116, "duplicate": 0, "updated": 0, "passed": 84, "rejected": 0}
    assert reports[0].counts() == figures
    assert reports[1].counts() == {**figures, "new": 0, "duplicate": 116}
    assert set(FailureCase.objects.values_list("count", flat=True)) == {1}


@needs_data
def test_an_import_takes_few_queries(harness: Harness) -> None:
    with CaptureQueriesContext(connection) as queries:
        store_records(DEV, harness, read_file(TAU_BENCH), ImportReport(), masker=current_masker())
    assert len(queries) < 20


def test_the_same_failure_under_two_ids_is_counted_once(harness: Harness) -> None:
    for _ in range(2):
        report = store(harness, make_record("a"), make_record("b"))
    case = FailureCase.objects.get()
    assert (case.source_id, case.count, case.state) == ("a", 2, CaseState.OPEN)
    assert (report.new, report.duplicate) == (0, 2)


def test_a_duplicate_of_an_earlier_import_is_counted(harness: Harness) -> None:
    store(harness, make_record("a"))
    report = store(harness, make_record("b"), make_record("c"))
    assert report.duplicate == 2
    assert FailureCase.objects.get().count == 3


def test_other_content_under_the_same_id_is_an_update(harness: Harness) -> None:
    store(harness, make_record("a", reply="89元"))
    report = store(harness, make_record("a", reply="99元"))
    assert (report.updated, report.new) == (1, 0)
    assert FailureCase.objects.get().reply == "99元"


def test_an_update_of_a_counted_id_leaves_the_case_it_was_counted_on(harness: Harness) -> None:
    store(harness, make_record("a"), make_record("b"))
    report = store(harness, make_record("b", reply="另一个"))
    # A case more than there was.
    assert (report.new, report.updated) == (1, 0)
    assert list(FailureCase.objects.order_by("pk").values_list("source_id", "count")) == [("a", 1), ("b", 1)]
    assert not Sighting.objects.exists()


def said(harness: Harness) -> list[tuple[str, str, int]]:
    cases = FailureCase.objects.filter(harness=harness).order_by("source_id")
    return list(cases.values_list("source_id", "reply", "count"))


def figures(report: ImportReport) -> tuple[int, int, int]:
    return report.new, report.updated, report.duplicate


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_record_with_what_a_case_used_to_say_is_a_case_of_its_own(
    harness: Harness, order: tuple[int, int]
) -> None:
    store(harness, make_record("1", reply="89元"))
    records = [make_record("1", reply="99元"), make_record("2", reply="89元")]
    report = store(harness, *(records[place] for place in order))
    assert figures(report) == (1, 1, 0)
    assert said(harness) == [("1", "99元", 1), ("2", "89元", 1)]
    assert figures(store(harness, *records)) == (0, 0, 2)
    assert said(harness) == [("1", "99元", 1), ("2", "89元", 1)]


def test_an_export_whose_ids_moved_by_one_loses_nothing(harness: Harness) -> None:
    replies = [f"reply {number}" for number in range(5)]
    store(harness, *(make_record(str(number), reply=reply) for number, reply in enumerate(replies)))
    moved = [make_record(str(number), reply=reply) for number, reply in enumerate(["newest", *replies])]
    assert figures(store(harness, *moved)) == (1, 5, 0)
    assert [reply for _id, reply, _count in said(harness)] == ["newest", *replies]
    assert figures(store(harness, *moved)) == (0, 0, 6)


def test_what_is_found_under_another_id_stays_when_the_case_comes_to_say_something_else(
    harness: Harness,
) -> None:
    store(
        harness,
        make_record("1", reply="89元"),
        make_record("2", reply="89元"),
        make_record("3", reply="89元"),
    )
    case = FailureCase.objects.get()
    case.note, case.state = "nothing to do", CaseState.IGNORED
    case.save()
    assert figures(store(harness, make_record("1", reply="99元"))) == (0, 1, 0)
    assert said(harness) == [("1", "99元", 1), ("2", "89元", 2)]
    # What people said of the failure holds for its twin.
    twin = FailureCase.objects.get(source_id="2")
    assert (twin.note, twin.state) == ("nothing to do", CaseState.IGNORED)
    same = [make_record("1", reply="99元"), make_record("2", reply="89元"), make_record("3", reply="89元")]
    assert figures(store(harness, *same)) == (0, 0, 3)


def test_sightings_go_to_the_case_that_says_the_same(harness: Harness) -> None:
    store(
        harness,
        make_record("1", reply="89元"),
        make_record("2", reply="89元"),
        make_record("3", reply="89元"),
    )
    report = store(harness, make_record("1", reply="99元"), make_record("2", reply="89元"))
    assert figures(report) == (1, 1, 0)
    assert said(harness) == [("1", "99元", 1), ("2", "89元", 2)]
    assert Sighting.objects.get().case.source_id == "2"


def test_a_case_comes_to_say_what_a_record_of_the_same_import_says(harness: Harness) -> None:
    store(harness, make_record("1", reply="89元"))
    records = [make_record("2", reply="99元"), make_record("1", reply="99元")]
    assert figures(store(harness, *records)) == (0, 1, 1)
    assert said(harness) == [("1", "99元", 2)]
    assert figures(store(harness, *records)) == (0, 0, 2)


def test_ids_of_a_file_that_clash_are_told_apart(harness: Harness) -> None:
    records = [make_record(each, f"text {n}") for n, each in enumerate(["x", "x", "x", "i" * 300, "i" * 300])]
    assert store(harness, *records).new == 5
    assert store(harness, *records).duplicate == 5
    assert FailureCase.objects.count() == 5


def test_two_ids_with_one_placeholder_are_two_cases(harness: Harness) -> None:
    numbers = ("13812345678", "138-1234-5678", "13912345678")
    records = [make_record(number, f"text {place}") for place, number in enumerate(numbers)]
    assert figures(store(harness, *records)) == (3, 0, 0)
    assert figures(store(harness, *records)) == (0, 0, 3)
    assert not any("1234" in name for name, _reply, _count in said(harness))


def test_one_id_twice_in_a_file_keeps_both_records(harness: Harness) -> None:
    records = [make_record("a", "第一"), make_record("a", "第二")]
    assert store(harness, *records).new == 2
    assert store(harness, *records).duplicate == 2


def test_a_resolved_case_that_is_seen_again_is_open(harness: Harness) -> None:
    store(harness, make_record("a"))
    move(FailureCase.objects.get(), CaseState.RESOLVED, DEV)
    store(harness, make_record("a"))
    assert FailureCase.objects.get().state == CaseState.RESOLVED
    store(harness, make_record("b"))
    assert FailureCase.objects.get().state == CaseState.OPEN


def test_a_case_that_people_opened_meanwhile_is_open(harness: Harness) -> None:
    store(harness, make_record("a"))
    case = FailureCase.objects.get()
    case.state = CaseState.RESOLVED
    assert reopen_seen_again(DEV, [case]) == 0
    assert FailureCase.objects.get().state == CaseState.OPEN


def test_an_ignored_case_stays_ignored(harness: Harness) -> None:
    store(harness, make_record("a"))
    move(FailureCase.objects.get(), CaseState.IGNORED, DEV, "无关")
    store(harness, make_record("a", reply="新的"), make_record("b"))
    assert FailureCase.objects.get(source_id="a").state == CaseState.IGNORED


def test_long_integers_and_long_ids_survive_the_database(harness: Harness) -> None:
    number = 12345678901234567890123
    record = make_record("x" * 500, context={"order": number})
    store(harness, record)
    assert FailureCase.objects.get().context == {"order": number}
    assert store(harness, record).duplicate == 1


def test_failures_of_an_evaluation_come_in_once() -> None:
    harness = make_harness()
    evaluation = make_evaluation(harness)
    run(evaluation)
    assert [take_failures(DEV, evaluation), take_failures(DEV, evaluation)] == [2, 0]
    case = FailureCase.objects.get(source_id="cases/q3")
    assert case.scores == {"accuracy": 0, "effectiveness": 0.5}
    assert (case.harness_commit, case.count) == (evaluation.commit, 1)
    assert case.dataset_case is not None


def test_a_later_evaluation_updates_the_failure_of_its_case() -> None:
    harness = make_harness()
    first = make_evaluation(harness)
    run(first)
    take_failures(DEV, first)
    move(FailureCase.objects.get(source_id="cases/q3"), CaseState.RESOLVED, DEV)
    second = Evaluation.objects.create(
        harness=harness, commit="f" * 40, dataset_version=first.dataset_version, created_by="dev"
    )
    for result in first.results.all():
        result.pk, result.evaluation, result.reply = None, second, "still wrong"
        result._state.adding = True
        result.save()
    assert take_failures(DEV, second) == 1
    case = FailureCase.objects.get(source_id="cases/q3")
    assert (case.reply, case.count, case.state) == ("still wrong", 2, CaseState.OPEN)
    assert take_failures(DEV, first) == 0


def test_sealed_cases_do_not_come_in() -> None:
    harness = make_harness()
    version = make_version(harness, [make_case("q8", "sealed"), make_case("q9", "guard")])
    evaluation = create_evaluation(
        DEV, harness, "main", version, model="m", judge_model="j", splits=("guard", "sealed")
    )
    run(evaluation)
    assert take_failures(DEV, evaluation) == 1
    assert FailureCase.objects.get().source_id == "cases/q9"


def test_an_error_is_not_a_failure() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation, outage())
    assert take_failures(DEV, evaluation) == 0
