from django.test import Client

from evolution.loop.authors import author_of
from evolution.loop.repositories import open_repository
from tests.evolution.measured import DEV
from tests.workbench.views.conftest import World


def test_the_commits_that_changed_a_file_are_listed_with_the_newest_change(
    world: World, viewer: Client
) -> None:
    address = world.url(f"files/history/?ref={world.proposal.head_commit}&path=prompts/role.md")
    answer = viewer.get(address)
    assert [change.status for change in answer.context["changes"]] == ["modified", "added"]
    assert answer.context["shown"].commit.sha == world.proposal.head_commit
    rows = [row for hunk in answer.context["diff"].files[0].hunks for row in hunk.rows]
    assert [row.kind for row in rows] == ["-", "+"]


def test_an_older_change_is_shown_when_it_is_asked_for(world: World, viewer: Client) -> None:
    first = open_repository(world.harness).log(world.proposal.head_commit)[-1].sha
    address = world.url(
        f"files/history/?ref={world.proposal.head_commit}&path=prompts/role.md&commit={first}"
    )
    assert viewer.get(address).context["diff"].files[0].status == "added"


def test_what_a_file_was_called_is_said(world: World, viewer: Client) -> None:
    repository = open_repository(world.harness)
    text = repository.read_file("main", "harness.yaml")
    edits = {"harness.yaml": None, "<b>.yaml": text}
    moved = repository.commit("b", edits, parent="main", author=author_of(DEV), message="<i>move</i>")
    answer = viewer.get(world.url("files/history/"), {"ref": moved, "path": "<b>.yaml"}).content.decode()
    assert "harness.yaml" in answer
    assert "&lt;i&gt;move&lt;/i&gt;" in answer
    assert "<b>.yaml" not in answer


def test_odd_input_is_a_message_and_no_failure(world: World, viewer: Client) -> None:
    for query in (
        {"ref": "nowhere"},
        {"path": "../x"},
        {"path": "-x"},
        {"commit": "--help"},
        {"path": "not/there"},
    ):
        assert viewer.get(world.url("files/history/"), query).status_code == 200


def test_the_files_page_leads_to_the_history(world: World, viewer: Client) -> None:
    assert world.url("files/history/") in viewer.get(world.url("files/")).content.decode()
