from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evolution.loop.cases import ImportReport, store_records
from evolution.loop.failure_rules import FILES, parse_rule
from evolution.loop.masking import Masker, Rule, current_masker
from evolution.models import FailureCase, Harness
from evolution.ports import Found, Record, Rejected, Unread
from tests.evolution.intake import make_record
from tests.evolution.measured import DEV

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def put_off(record: Record, text: str = "", read: Callable[[], Record | Rejected] | None = None) -> Unread:
    digest = (text or repr(record)).encode()[-16:]
    return Unread(record.source, record.source_id, 1, digest, read or (lambda: record))


def never() -> Record:
    raise AssertionError("it was read")


def store(harness: Harness, *items: Found, **options: Any) -> tuple[int, int, int]:
    report = ImportReport()
    store_records(DEV, harness, items, report, **{"masker": current_masker(), **options})
    assert report.read == len(items) == sum(report.counts().values()) - report.read
    return report.new, report.updated, report.duplicate


def test_what_is_stored_as_it_is_is_not_read(harness: Harness) -> None:
    record = make_record("1")
    assert store(harness, put_off(record, "a text")) == (1, 0, 0)
    assert store(harness, put_off(record, "a text", never)) == (0, 0, 1)
    assert store(harness, put_off(make_record("1", reply="new"), "another text")) == (0, 1, 0)
    assert FailureCase.objects.get().reply == "new"
    # The first text once more says something else than the case.
    assert store(harness, put_off(record, "a text")) == (0, 1, 0)


@pytest.mark.parametrize(
    "options",
    [
        {"rule": parse_rule("reward<1,verdict")},
        {"only_failures": False},
        {"masker": Masker([Rule("word", "word", "链接")])},
    ],
)
def test_under_other_rules_it_is_read_again(harness: Harness, options: dict[str, Any]) -> None:
    record = make_record("1")
    store(harness, put_off(record, "a text"))
    with pytest.raises(AssertionError, match="it was read"):
        store(harness, put_off(record, "a text", never), **options)


def test_what_was_taken_with_what_passed_is_no_failure_afterwards(harness: Harness) -> None:
    passed = replace(make_record("1"), failed=False)
    assert store(harness, put_off(passed), only_failures=False) == (1, 0, 0)
    assert store(harness, put_off(passed), only_failures=True) == (0, 0, 0)
    assert store(harness, put_off(passed, read=never), only_failures=False) == (0, 0, 1)


def test_a_case_that_was_changed_from_elsewhere_is_read_again(harness: Harness) -> None:
    record = make_record("1")
    store(harness, put_off(record))
    assert store(harness, make_record("1", reply="pushed")) == (0, 1, 0)
    assert store(harness, put_off(record)) == (0, 1, 0)


def test_records_of_one_id_stay_apart(harness: Harness) -> None:
    first, second = put_off(make_record("1", reply="a")), put_off(make_record("1", reply="b"))
    assert store(harness, first, second) == (2, 0, 0)
    assert store(harness, first, second) == (0, 0, 2)
    assert store(harness, first, first) == (0, 0, 2)
    assert FailureCase.objects.count() == 2


def test_a_record_that_is_rejected_takes_no_id(harness: Harness) -> None:
    broken = put_off(make_record("1"), "broken", lambda: Rejected(1, "bad"))
    good = put_off(make_record("1"), "good")
    assert store(harness, broken, good) == (1, 0, 0)
    assert FailureCase.objects.get().source_id == "1"
    assert store(harness, broken, good) == (0, 0, 1)


def test_ids_that_are_masked_are_recognised_once_they_are_read(harness: Harness) -> None:
    record = put_off(make_record("13812345678"))
    assert store(harness, record) == (1, 0, 0)
    assert store(harness, record) == (0, 0, 1)


def test_sources_and_harnesses_are_kept_apart(harness: Harness) -> None:
    record = make_record("1")
    store(harness, put_off(record))
    other = Harness.objects.create(name="other", kind="agent", path="other.git")
    assert store(other, put_off(record)) == (1, 0, 0)
    # The same failure, seen under another source.
    assert store(harness, put_off(replace(record, source="elsewhere"))) == (0, 0, 1)
    assert FailureCase.objects.get(harness=harness).count == 2


def test_the_rule_for_files_is_what_it_was(harness: Harness) -> None:
    record = make_record("1")
    store(harness, put_off(record), rule=FILES)
    assert store(harness, put_off(record, read=never), rule=parse_rule(str(FILES))) == (0, 0, 1)
