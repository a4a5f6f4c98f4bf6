from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from evolution.models import BulkAction, DatasetCase, FailureCase, SavedView
from tests.evolution.intake import make_failure
from tests.workbench.views.conftest import World


def send(world: World, client: Client, verb: str, query: str = "", **given: Any) -> Any:
    return client.post(world.url(f"cases/bulk/{query}"), {"verb": verb, **given}, follow=True)


def messages(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def test_the_chosen_rows_are_ignored_and_the_list_is_as_it_was(world: World, developer: Client) -> None:
    ids = list(FailureCase.objects.values_list("pk", flat=True))

    answer = send(world, developer, "ignore", "?cluster=1&before=99999", ids=ids, reason="noise")

    assert messages(answer) == ["2 cases are ignored."]
    assert answer.redirect_chain[0][0] == world.url("cases/?cluster=1&before=99999")
    assert set(FailureCase.objects.values_list("state", "note")) == {("ignored", "noise")}


def test_all_that_pass_are_chosen_with_their_exact_number(world: World, developer: Client) -> None:
    make_failure(world.harness, "loose")
    page = developer.get(world.url("cases/?cluster=1&all=1"))
    newest = make_failure(world.harness, "later", cluster=world.cluster)

    answer = send(world, developer, "tag", "?cluster=1&all=1", all="1", upto=page.context["upto"], tag="seen")

    assert page.context["matching"] == 2
    assert "All 2 cases that pass the filters" in page.content.decode()
    assert messages(answer) == ["2 cases have the tag now."]
    newest.refresh_from_db()
    assert newest.tags == []


@pytest.mark.parametrize(
    ("verb", "given", "change"),
    [
        ("tag", {"tag": "price"}, ("tags", ["price"])),
        ("assign", {"person": "developer"}, ("assignee__username", "developer")),
        ("assign", {"person": ""}, ("assignee__username", None)),
        ("move", {"number": ""}, ("cluster", None)),
        ("reopen", {}, ("state", "open")),
    ],
)
def test_each_button_does_what_it_says(
    world: World, developer: Client, verb: str, given: dict[str, str], change: tuple[str, Any]
) -> None:
    ben = User.objects.create_user("ben")
    FailureCase.objects.filter(pk=world.case.pk).update(state="ignored", assignee=ben)

    send(world, developer, verb, ids=[world.case.pk], **given)

    column, value = change
    assert FailureCase.objects.filter(pk=world.case.pk).values_list(column, flat=True)[0] == value


def test_the_last_action_is_offered_for_undoing(world: World, developer: Client) -> None:
    answer = send(world, developer, "tag", ids=[world.case.pk], tag="price")
    action = BulkAction.objects.exclude(actor="d").get()

    undone = developer.post(world.url(f"cases/bulk/{action.pk}/undo/"), follow=True)

    assert answer.context["last_bulk"] == action
    assert messages(undone) == ["1 case is as it was before."]
    assert undone.context["last_bulk"] is None
    world.case.refresh_from_db()
    assert world.case.tags == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"verb": "ignore", "ids": [], "reason": "x"}, "no case is chosen"),
        ({"verb": "ignore", "ids": ["1"], "reason": ""}, "say why the cases are to be ignored"),
        ({"verb": "tag", "ids": ["x", "²"], "tag": "x"}, "no case is chosen"),
        ({"verb": "burn", "ids": ["1"]}, "burn"),
    ],
)
def test_what_makes_no_sense_is_told(
    world: World, developer: Client, given: dict[str, Any], said: str
) -> None:
    answer = developer.post(world.url("cases/bulk/"), given, follow=True)

    assert said in messages(answer)[0]
    assert not BulkAction.objects.exclude(actor="d").exists()


def test_cases_are_taken_to_a_dataset(world: World, developer: Client) -> None:
    answer = developer.post(world.url("cases/bulk/?state=open"), {"verb": "dataset", "ids": [world.case.pk]})

    assert answer["Location"] == world.url(f"cases/dataset/?state=open&ids={world.case.pk}")


def test_viewers_have_no_buttons_and_change_nothing(world: World, viewer: Client) -> None:
    page = viewer.get(world.url("cases/")).content.decode()
    answer = viewer.post(world.url("cases/bulk/"), {"verb": "tag", "ids": [world.case.pk], "tag": "x"})

    assert 'name="verb"' not in page
    assert answer.status_code == 403


UNREADABLE = [
    "lowest=abc",
    "highest=nan",
    "since=2026-99-01",
    "imported=0",
    "cluster=abc",
    "version=abc",
    f"text={'x' * 201}",
    f"source={'x' * 70}",
]


@pytest.mark.parametrize("query", UNREADABLE)
def test_nothing_is_done_to_all_that_pass_a_filter_that_cant_be_read(
    world: World, developer: Client, query: str
) -> None:
    deeds = BulkAction.objects.count()
    answer = send(world, developer, "ignore", f"?{query}&all=1", all="1", upto=10**9, reason="noise")
    page = developer.get(world.url(f"cases/?{query}&all=1"))
    form = developer.get(world.url(f"cases/dataset/?{query}&all=1&upto=99999999"))
    developer.post(world.url(f"cases/views/save/?{query}"), {"name": "mine"})

    assert "can't be read" in messages(answer)[0]
    assert "matching" not in page.context
    assert "These filters can't be read and are left out:" in page.content.decode()
    assert form.status_code == 302
    assert set(FailureCase.objects.values_list("state", flat=True)) == {"open"}
    assert BulkAction.objects.count() == deeds
    assert not SavedView.objects.filter(name="mine").exists()


def test_what_comes_in_while_the_dataset_is_asked_about_is_not_added(world: World, developer: Client) -> None:
    page = developer.get(world.url("cases/?cluster=1&all=1"))
    address = developer.post(
        world.url("cases/bulk/?cluster=1&all=1"),
        {"verb": "dataset", "all": "1", "upto": page.context["upto"]},
    ).headers["Location"]
    make_failure(world.harness, "later", cluster=world.cluster)

    form = developer.get(address)
    answer = developer.post(
        address.replace("dataset/?", "dataset/add/?"), {"dataset": "kept", "split": "dev"}
    )

    assert form.context["count"] == page.context["matching"] == 2
    assert answer.status_code == 302
    assert "upto" not in answer.headers["Location"]
    assert DatasetCase.objects.filter(version__dataset__name="kept").count() == 2


@pytest.mark.parametrize(
    ("verb", "given"), [("assign", {"person": "nobody-at-all"}), ("move", {"number": 999})]
)
def test_whom_or_what_there_is_not_is_said(
    world: World, developer: Client, verb: str, given: dict[str, Any]
) -> None:
    answer = send(world, developer, verb, ids=[world.case.pk], **given)

    assert messages(answer)[0].casefold().startswith("there is no")
