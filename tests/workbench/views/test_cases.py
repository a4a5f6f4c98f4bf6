from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evolution.models import FailureCase
from tests.evolution.intake import make_failure
from tests.workbench.views.conftest import World


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("", ["wrong price", "no price", "loose"]),
        ("?cluster=none", ["loose"]),
        ("?cluster=1", ["wrong price", "no price"]),
        ("?text=wrong+price", ["wrong price"]),
        ("?category=stock", ["loose"]),
        ("?state=ignored", []),
        ("?cluster=nonsense", ["wrong price", "no price", "loose"]),
        ("?before=99999999", ["wrong price", "no price", "loose"]),
        # Nothing is older: the end of the list.
        ("?before=1", ["wrong price", "no price", "loose"]),
        ("?before=x&since=1e9&lowest=nan&imported=-1&upto=x", ["wrong price", "no price", "loose"]),
        ("?since=0001-01-01&until=9999-12-31", ["wrong price", "no price", "loose"]),
        ("?until=1999-01-01", []),
    ],
)
def test_the_filters_narrow_the_list(world: World, viewer: Client, query: str, titles: list[str]) -> None:
    make_failure(world.harness, "loose", category="stock")

    page = viewer.get(world.url(f"cases/{query}")).context["page"]

    assert {case.title for case in page} == set(titles)


def test_a_filter_of_htmx_gets_the_table_alone(world: World, viewer: Client) -> None:
    headers = {"HX-Request": "true", "HX-Target": "results"}

    page = viewer.get(world.url("cases/?text=wrong"), headers=headers).content.decode()

    assert page.lstrip().startswith("<section")
    assert "wrong price" in page


def test_the_list_makes_as_many_queries_for_many_cases(world: World, viewer: Client) -> None:
    address = world.url("cases/")
    with CaptureQueriesContext(connection) as few:
        viewer.get(address)
    for number in range(40):
        make_failure(world.harness, f"case {number}", cluster=world.cluster)

    with CaptureQueriesContext(connection) as many:
        viewer.get(address)

    assert len(many) == len(few)


def test_ignoring_keeps_the_reason(world: World, developer: Client) -> None:
    developer.post(world.url(f"cases/{world.case.pk}/ignore/"), {"reason": "not ours"})

    world.case.refresh_from_db()
    assert (world.case.state, world.case.note) == ("ignored", "not ours")


def test_an_ignored_case_is_opened_again(world: World, developer: Client) -> None:
    FailureCase.objects.filter(pk=world.case.pk).update(state="ignored")

    developer.post(world.url(f"cases/{world.case.pk}/reopen/"))

    world.case.refresh_from_db()
    assert world.case.state == "open"


def test_what_a_viewer_wrote_never_becomes_markup(world: World, viewer: Client) -> None:
    case = make_failure(
        world.harness, "<script>alert(1)</script>\u202egpj", reply="<img src=x onerror=alert(1)>"
    )

    page = viewer.get(world.url(f"cases/{case.pk}/")).content.decode()

    assert "<script>alert" not in page
    assert "<img src=x" not in page
    assert "U+202E" in page


def test_a_case_without_a_trajectory_is_shown(world: World, viewer: Client) -> None:
    case = make_failure(
        world.harness, "bare", request={"any": ["shape"]}, context={"also": 1}, trajectory=[1, "x"]
    )

    assert viewer.get(world.url(f"cases/{case.pk}/")).status_code == 200


@pytest.mark.parametrize("odd", [True, 5, 1.5, "x", {"a": 1}, [5], [None]])
def test_a_case_of_whatever_shape_is_shown(world: World, viewer: Client, odd: Any) -> None:
    parts = ("messages", "tool_calls", "hooks", "skills_loaded", "status", "error", "usage")
    FailureCase.objects.filter(pk=world.case.pk).update(
        trajectory=dict.fromkeys(parts, odd),
        context={"room": {"name": odd, "current_link": odd}, "products": odd, "faq": odd},
        request={"danmaku": odd, "history": odd},
        scores={"accuracy": odd},
        findings=odd,
    )

    assert viewer.get(world.url(f"cases/{world.case.pk}/")).status_code == 200


@pytest.mark.parametrize(("state", "total", "stock"), [("open", 1, 0), ("ignored", 1, 1), ("", 2, 1)])
def test_counts_are_of_what_passes_the_filters(
    world: World, viewer: Client, state: str, total: int, stock: int
) -> None:
    FailureCase.objects.filter(pk=world.case.pk).update(state="ignored", category="stock")

    answer = viewer.get(world.url(f"cases/counts/?state={state}"))

    counts = answer.context["counts"]
    assert (counts.total, counts.categories.get("stock", 0)) == (total, stock)
    assert answer.context["clusters"] == [(1, "cluster 1", total)]


def test_the_list_is_not_counted_for_its_page(world: World, viewer: Client) -> None:
    with CaptureQueriesContext(connection) as made:
        viewer.get(world.url("cases/"))

    assert not [query["sql"] for query in made if "COUNT(" in query["sql"] or "OFFSET" in query["sql"]]


def test_rows_lead_to_cases_within_the_list(world: World, viewer: Client) -> None:
    page = viewer.get(world.url("cases/?text=wrong&cluster=1")).content.decode()

    case = FailureCase.objects.get(title="wrong price")
    assert f'cases/{case.pk}/?cluster=1&amp;text=wrong"' in page
