"""What models were asked: a list with its sums, and one question as a whole, whatever stands in it."""

import json

from django.test import Client

from tests.workbench.views.conftest import World, make_exchange


def test_the_list_sums_up_by_model(world: World, viewer: Client) -> None:
    make_exchange(world.cluster, world.case, cost="0.0375", seconds=4.5)
    make_exchange(world.cluster, world.case, cost=None, model="dear", error="away", replies=[])

    rows = {row.model: row for row in viewer.get(world.url("exchanges/")).context["spending"]}

    assert (rows["m"].count, float(rows["m"].cost), rows["m"].seconds) == (2, 0.05, 3.0)
    assert (rows["dear"].failed, rows["dear"].cost, rows["dear"].unpriced) == (1, None, 1)


def test_the_list_is_narrowed(world: World, viewer: Client) -> None:
    failed = make_exchange(world.cluster, world.case, purpose="draft", error="away")

    for query in ("failed=1", "purpose=draft", "purpose=draft&cluster=1"):
        page = viewer.get(world.url(f"exchanges/?{query}")).context["page"]
        assert [exchange.pk for exchange in page] == [failed.pk], query
    assert not viewer.get(world.url("exchanges/?cluster=7")).context["page"].object_list


def test_every_reply_is_shown_with_what_was_wrong_with_it(world: World, viewer: Client) -> None:
    page = viewer.get(world.url(f"exchanges/{world.exchange.pk}/")).content.decode()

    assert page.index("dear me") < page.index("no JSON") < page.index("cluster_name")
    assert "in 2 replies" in page


def test_a_long_text_is_brought_when_it_is_asked_for(world: World, viewer: Client) -> None:
    text = "<script>alert(1)</script>\u202e" + "a" * 4_000 + "the end"
    messages = [{"role": "user", "content": text}]
    exchange = make_exchange(world.cluster, world.case, request={"messages": messages})
    address = world.url(f"exchanges/{exchange.pk}/value/?path=/request/messages/0/content")

    page = viewer.get(world.url(f"exchanges/{exchange.pk}/")).content.decode()
    part = viewer.get(address, headers={"HX-Request": "true"}).content.decode()

    assert "the end" not in page
    assert "show all" in page
    assert "the end" in part
    assert "<script>alert" not in page + part
    assert "\u202e" not in page + part


def test_question_and_answers_are_downloaded_as_they_were(world: World, viewer: Client) -> None:
    answer = viewer.get(world.url(f"exchanges/{world.exchange.pk}/raw/?download"))

    kept = json.loads(answer.content)
    assert kept["replies"] == world.exchange.replies
    assert (kept["cost"], kept["model"], kept["cluster"]) == (0.0125, "m", 1)
    assert answer.headers["Content-Disposition"].startswith("attachment")


def test_a_record_of_any_shape_has_a_page(world: World, viewer: Client) -> None:
    shapes: list[dict[str, object]] = [
        {"replies": []},
        {"request": {}},
        {"shown": {"cases": ["x"], "cut": [3, {}], "files": 7}},
    ]
    for broken in shapes:
        exchange = make_exchange(world.cluster, world.case, **broken)
        assert viewer.get(world.url(f"exchanges/{exchange.pk}/")).status_code == 200
