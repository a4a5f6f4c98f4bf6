from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from evolution.models import FailureCase, Harness, ImportRun
from evolution.queries import cases
from evolution.queries.case_facets import count_by_value, list_choices
from evolution.queries.case_filters import CaseFilter, filter_cases
from evolution.queries.cases import count_cases, find_ids, find_neighbours, list_cases
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import make_harness

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return make_harness()


@pytest.fixture
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "PAGE_SIZE", 3)


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("text", ["", "price"])
def test_pages_go_down_and_up_without_gap(harness: Harness, text: str) -> None:
    ids = [make_failure(harness, f"price {n}").pk for n in range(8)][::-1]
    wanted = CaseFilter(text=text)

    first = list_cases(harness, wanted)
    second = list_cases(harness, wanted, before=first.older)
    third = list_cases(harness, wanted, before=second.older)
    back = list_cases(harness, wanted, after=third.newer)

    assert [case.pk for page in (first, second, third) for case in page] == ids
    assert (first.newer, third.older) == (None, None)
    assert [case.pk for case in back] == ids[3:6]
    assert [case.pk for case in list_cases(harness, wanted, after=back.newer)] == ids[:3]


@pytest.mark.usefixtures("small_pages")
def test_the_first_page_come_upon_from_below_is_the_beginning(harness: Harness) -> None:
    ids = [make_failure(harness).pk for _ in range(4)]

    assert list_cases(harness, CaseFilter(), after=ids[0]).newer is None


def make_world(harness: Harness) -> None:
    """One case that has everything, and one that has nothing."""
    run = ImportRun.objects.create(harness=harness, digest="0", created_by="x")
    fields: dict[str, Any] = {
        "source": "langfuse",
        "category": "price",
        "language": "en",
        "harness_commit": "ab" * 20,
        "tags": ["coupon", "tone"],
        "score": 0.4,
        "assignee": User.objects.create_user("anna"),
        "import_run": run,
        "cluster": make_cluster(harness, 7),
    }
    make_failure(harness, "full", **fields)
    make_failure(harness, "bare", language="zh")


@pytest.mark.parametrize(
    "fields",
    [
        {"source": "langfuse"},
        {"category": "price"},
        {"language": "en"},
        {"version": "ab" * 20},
        {"version": "abab"},
        {"tag": "tone"},
        {"lowest": 0.4},
        {"highest": 0.4, "lowest": 0.1},
        {"assignee": "anna"},
        {"cluster": "7"},
    ],
)
def test_each_filter_narrows(harness: Harness, fields: dict[str, Any]) -> None:
    make_world(harness)

    assert [case.title for case in list_cases(harness, CaseFilter(**fields))] == ["full"]


@pytest.mark.parametrize(
    ("fields", "titles"),
    [
        ({"cluster": "none"}, ["bare"]),
        ({"assignee": "none"}, ["bare"]),
        ({"tag": "coupon", "category": "price", "text": "full"}, ["full"]),
        ({"tag": "coupon", "language": "zh"}, []),
        ({"cluster": "99"}, []),
        ({"lowest": 0.41}, []),
        ({"highest": 0.39}, []),
        ({"version": "abac"}, []),
        ({"state": "ignored"}, []),
        ({}, ["bare", "full"]),
    ],
)
def test_filters_go_together(harness: Harness, fields: dict[str, Any], titles: list[str]) -> None:
    make_world(harness)

    assert [case.title for case in list_cases(harness, CaseFilter(**fields))] == titles


def test_an_import_is_a_filter(harness: Harness) -> None:
    make_world(harness)
    run = ImportRun.objects.get()

    assert [case.title for case in list_cases(harness, CaseFilter(imported=run.pk))] == ["full"]


def test_days_are_whole_ones_whatever_else_was_added_then(harness: Harness) -> None:
    day = datetime(2026, 3, 5, tzinfo=UTC)
    for hours in range(-50, 75, 5):
        case = make_failure(harness, f"{hours}")
        FailureCase.objects.filter(pk=case.pk).update(created_at=day + timedelta(hours=hours))

    found = list_cases(harness, CaseFilter(since=date(2026, 3, 5), until=date(2026, 3, 5)))

    assert [int(case.title) for case in found] == [20, 15, 10, 5, 0]


def test_other_harnesses_are_not_listed(harness: Harness) -> None:
    make_failure(make_harness("other"), "theirs")

    assert not list_cases(harness, CaseFilter())
    assert not list_cases(harness, CaseFilter(text="theirs"))


@pytest.mark.parametrize("text", ["", "a"])
def test_all_that_pass_are_counted_up_to_an_id(harness: Harness, text: str) -> None:
    ids = [make_failure(harness, f"a{n}").pk for n in range(5)]

    assert count_cases(harness, CaseFilter(text=text, upto=ids[2])) == 3
    assert sorted(find_ids(harness, CaseFilter(text=text))) == ids


@pytest.mark.parametrize("text", ["", "odd"])
def test_neighbours_are_those_of_the_list(harness: Harness, text: str) -> None:
    ids = [make_failure(harness, "odd" if n % 2 else "even").pk for n in range(7)]

    step = 2 if text else 1
    assert find_neighbours(harness, CaseFilter(text=text), ids[3]) == (ids[3 + step], ids[3 - step])


def test_the_choices_are_the_values_that_are_there(harness: Harness) -> None:
    make_world(harness)
    make_failure(make_harness("other"), source="theirs", tags=["theirs"])

    choices = list_choices(harness)

    assert (choices.sources, choices.categories, choices.tags) == (
        ["langfuse", "test"],
        ["price"],
        ["coupon", "tone"],
    )
    assert choices.versions == ["ab" * 20]


def test_cases_are_counted_by_value(harness: Harness) -> None:
    make_world(harness)
    make_failure(harness, tags=["tone"], language="zh")

    counts = count_by_value(harness, CaseFilter())

    assert (counts.total, counts.is_capped, counts.unclustered) == (3, False, 2)
    assert counts.tags == {"tone": 2, "coupon": 1}
    assert counts.languages == {"zh": 2, "en": 1}
    assert counts.clusters == {"7": 1}


def test_a_large_inbox_is_counted_by_its_newest(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evolution.queries.case_facets.MOST_COUNTED", 2)
    for n in range(3):
        make_failure(harness, category=f"c{n}")

    counts = count_by_value(harness, CaseFilter())

    assert (counts.total, counts.is_capped, counts.categories) == (2, True, {"c2": 1, "c1": 1})


def test_a_filter_of_cases_is_a_query(harness: Harness) -> None:
    make_world(harness)

    assert filter_cases(harness, CaseFilter(text="ful")).get().title == "full"


@pytest.mark.usefixtures("small_pages")
@pytest.mark.parametrize("text", ["", "price"])
def test_no_page_is_empty_while_cases_pass(harness: Harness, text: str) -> None:
    ids = [make_failure(harness, f"price {n}").pk for n in range(5)][::-1]
    wanted = CaseFilter(text=text)
    FailureCase.objects.filter(pk=ids[0]).update(state="ignored")

    newest = list_cases(harness, wanted, after=ids[1])
    oldest = list_cases(harness, wanted, before=ids[4])

    assert [case.pk for case in newest] == ids[1:4]
    assert (newest.newer, newest.older) == (None, ids[3])
    assert [case.pk for case in oldest] == ids[2:]
    assert (oldest.newer, oldest.older) == (ids[2], None)


@pytest.mark.usefixtures("small_pages")
def test_the_way_up_ends_with_a_whole_page(harness: Harness) -> None:
    ids = [make_failure(harness, f"price {n}").pk for n in range(5)][::-1]

    page = list_cases(harness, CaseFilter(), after=ids[1])

    assert [case.pk for case in page] == ids[:3]
