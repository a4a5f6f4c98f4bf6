from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from django.db import connection

from evolution.errors import ImportTaken, StaleState
from evolution.loop.cases import BATCH, COUNTS
from evolution.loop.failure_rules import parse_rule
from evolution.loop.import_locks import hold_import
from evolution.loop.imports import ImportOptions, create_import, find_unfinished, perform_import, read_options
from evolution.loop.masking import current_masker
from evolution.models import FailureCase, Harness, ImportRun
from evolution.ports import Record, Rejected
from evolution.states import ImportState
from tests.evolution.intake import make_record
from tests.evolution.measured import DEV
from tests.evolution.racing import run_at_once

pytestmark = pytest.mark.django_db


@dataclass
class File:
    """Records that end with an error where the file is cut."""

    name: str
    make: Callable[[], Iterator[Record | Rejected]]
    format: str = "test"

    @property
    def unread(self) -> Iterator[Record | Rejected]:
        return self.make()


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def make_run(harness: Harness) -> ImportRun:
    return create_import(DEV, harness, [{"name": "f", "size": 1}], ImportOptions(), digest="d")


def records(
    count: int, *, breaks_at: int | None = None, prefix: str = ""
) -> Callable[[], Iterator[Record | Rejected]]:
    def make() -> Iterator[Record | Rejected]:
        for number in range(count):
            if number == breaks_at:
                raise OSError("the disk is gone: 13812345678")
            yield (
                Rejected(number, "bad")
                if number % 7 == 3
                else make_record(f"{prefix}{number}", f"q {prefix}{number}")
            )

    return make


def figures(run: ImportRun) -> list[int]:
    run.refresh_from_db()
    return [getattr(run, name) for name in COUNTS]


@pytest.mark.parametrize("breaks_at", [0, 1, 499, 500, 501, 1000, 1199])
def test_an_import_that_broke_anywhere_comes_to_the_same_in_the_end(harness: Harness, breaks_at: int) -> None:
    whole = make_run(harness)
    other = Harness.objects.create(name="other", kind="agent", path="other.git")
    broken = make_run(other)
    files = [File("a", records(700, prefix="a")), File("b", records(1200))]
    cut = [files[0], File("b", records(1200, breaks_at=breaks_at))]
    perform_import(DEV, whole, lambda: files, current_masker())
    with pytest.raises(OSError, match="disk"):
        perform_import(DEV, broken, lambda: cut, current_masker())
    broken.refresh_from_db()
    assert (broken.state, "138" in broken.message) == (ImportState.FAILED, False)
    assert broken.read == 700 + breaks_at // 500 * 500
    assert find_unfinished(other, "d") == [broken]
    perform_import(DEV, broken, lambda: files, current_masker())
    assert figures(broken) == figures(whole)
    assert (
        FailureCase.objects.filter(harness=other).count()
        == FailureCase.objects.filter(harness=harness).count()
    )
    assert list(broken.problems.values_list("file", "line")) == list(
        whole.problems.values_list("file", "line")
    )


def test_an_import_that_has_ended_is_left_alone(harness: Harness) -> None:
    run = make_run(harness)
    for _ in range(2):
        perform_import(DEV, run, lambda: [File("a", records(10))], current_masker())
    assert figures(run)[0] == 10
    assert find_unfinished(harness, "d") == []


def test_every_batch_tells_how_far_it_is(harness: Harness) -> None:
    seen: list[int] = []
    perform_import(
        DEV,
        make_run(harness),
        lambda: [File("a", records(1100))],
        current_masker(),
        lambda run: seen.append(run.read),
    )
    assert seen == [500, 1000, 1100]


def test_ids_with_one_placeholder_stay_apart_when_an_import_is_gone_on_with(harness: Harness) -> None:
    first, second = make_record("13812345678", "first"), make_record("138-1234-5678", "second")

    def between() -> Iterator[Record]:
        for number in range(BATCH - 1):
            yield make_record(str(number), f"text {number}")

    def cut() -> Iterator[Record | Rejected]:
        yield from (first, *between())
        raise OSError("the disk is gone")

    run = make_run(harness)
    with pytest.raises(OSError, match="disk"):
        perform_import(DEV, run, lambda: [File("a", cut)], current_masker())
    # The second one is in a batch of its own, which comes after the break.
    whole = File("a", lambda: iter([first, *between(), second]))
    perform_import(DEV, run, lambda: [whole], current_masker())
    assert (run.new, run.updated) == (BATCH + 1, 0)


def test_formats_are_those_of_the_files(harness: Harness) -> None:
    run = make_run(harness)
    files = [
        File("a", records(2)),
        File("b", records(2, prefix="b"), "csv"),
        File("a", records(1, prefix="c"), "csv"),
    ]
    perform_import(DEV, run, lambda: files, current_masker())
    run.refresh_from_db()
    assert run.formats == {"a": "test, csv", "b": "csv"}


def test_a_case_that_somebody_moved_meanwhile_costs_no_import(harness: Harness) -> None:
    run = make_run(harness)

    def break_off() -> Iterator[Record | Rejected]:
        yield make_record("1")
        raise StaleState("somebody moved it")

    # Another process would be a reason to leave the import alone; this is none.
    with pytest.raises(StaleState):
        perform_import(DEV, run, lambda: [File("a", break_off)], current_masker())
    run.refresh_from_db()
    assert (run.state, run.message) == (ImportState.FAILED, "somebody moved it")


def test_options_survive_the_database(harness: Harness) -> None:
    options = ImportOptions("csv", {"request": "q"}, parse_rule("a<3,errors"), only_failures=False)
    run = create_import(DEV, harness, [], options, digest="")
    run.refresh_from_db()
    assert read_options(run.options) == options


@pytest.mark.django_db(transaction=True)
def test_an_import_is_held_by_one_process(harness: Harness) -> None:
    run = make_run(harness)

    def other() -> None:
        perform_import(DEV, run, lambda: [File("a", records(1))], current_masker())

    with hold_import(run):
        (answer,) = run_at_once(other)
    assert isinstance(answer, ImportTaken)
    assert run_at_once(other) == [None]
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'")
        assert cursor.fetchone() == (0,)
