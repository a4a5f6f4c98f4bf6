"""Pages with a diff: what they show at once, and the parts that they ask for."""

import pytest
from django.test import Client

from evolution.loop.authors import author_of
from evolution.loop.repositories import open_repository
from evolution.models import Proposal
from tests.evolution.measured import DEV
from tests.workbench.views.conftest import World

HTMX = {"HX-Request": "true"}
OLD = "".join(f"line {at}\n" for at in range(1, 201))
NEW = OLD.replace("line 100\n", "line <b>100</b>\n")


@pytest.fixture
def proposal(world: World) -> Proposal:
    """A proposal that changes the hundredth of two hundred lines, and nothing that the harness uses."""
    repository = open_repository(world.harness)
    author, path = author_of(DEV), "notes/long.md"
    base = repository.commit("long", {path: OLD.encode()}, parent="main", author=author, message="m")
    head = repository.commit("longer", {path: NEW.encode()}, parent=base, author=author, message="m")
    world.proposal.base_commit, world.proposal.head_commit = base, head
    world.proposal.save()
    return world.proposal


def ask(
    client: Client, world: World, proposal: Proposal, query: str, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    address = world.url(f"proposals/{proposal.pk}/file/?path=notes/long.md&{query}")
    answer = client.get(address, headers=headers)
    return answer.status_code, answer.content.decode()


def test_a_page_shows_the_change_and_what_is_folded(world: World, viewer: Client, proposal: Proposal) -> None:
    page = viewer.get(world.url(f"proposals/{proposal.pk}/")).content.decode()

    assert "line <ins>&lt;b&gt;</ins>100<ins>&lt;/b&gt;</ins>" in page
    assert "96 unchanged lines" in page
    assert "97 unchanged lines" in page
    assert "line 50" not in page


def test_folded_lines_come_as_rows_of_the_table(world: World, viewer: Client, proposal: Proposal) -> None:
    status, part = ask(viewer, world, proposal, "gap=104-200&show=up", HTMX)

    assert status == 200
    assert part.count('class="same"') == 20
    assert ">line 104<" in part
    assert "gap=124-200&amp;show=up" in part
    assert "<html" not in part


def test_without_scripts_the_whole_file_is_a_page(world: World, viewer: Client, proposal: Proposal) -> None:
    status, page = ask(viewer, world, proposal, "gap=104-200")

    assert status == 200
    assert "<html" in page
    assert page.count('class="same"') == 199


def test_what_is_not_there_is_not_found(world: World, viewer: Client, proposal: Proposal) -> None:
    for query in ("gap=90-110", "gap=x", "line=900", "line=²"):
        assert ask(viewer, world, proposal, query, HTMX)[0] == 404
    address = world.url(f"proposals/{proposal.pk}/file/?path=nowhere.md")
    assert viewer.get(address).status_code == 404


def test_a_page_of_another_version_is_loaded_again(world: World, viewer: Client, proposal: Proposal) -> None:
    address = world.url(f"proposals/{proposal.pk}/file/?path=notes/long.md&gap=104-200&head={'0' * 40}")

    assert viewer.get(address, headers=HTMX).headers["HX-Refresh"] == "true"


def test_the_layout_is_remembered(world: World, viewer: Client, proposal: Proposal) -> None:
    page = world.url(f"proposals/{proposal.pk}/")
    viewer.get(f"{page}?layout=split")

    assert 'class="diff split"' in viewer.get(page).content.decode()


def test_an_unknown_layout_is_the_unified_one(world: World, viewer: Client, proposal: Proposal) -> None:
    page = viewer.get(world.url(f"proposals/{proposal.pk}/?layout=odd&space=odd")).content.decode()

    assert 'class="diff unified"' in page


def test_a_line_is_given_as_a_whole(world: World, viewer: Client, proposal: Proposal) -> None:
    assert ask(viewer, world, proposal, "side=new&line=100", HTMX)[1] == "line &lt;b&gt;100&lt;/b&gt;"
    assert "line &lt;b&gt;100&lt;/b&gt;" in ask(viewer, world, proposal, "side=new&line=100")[1]


def test_what_a_step_changes_altogether_is_shown_in_parts_too(world: World, viewer: Client) -> None:
    answer = viewer.get(world.url(f"steps/{world.step.number}/file/?path=prompts/role.md"), headers=HTMX)

    assert answer.status_code == 200
    assert '<table class="diff' in answer.content.decode()


def test_the_history_of_a_file_gives_its_lines_too(world: World, viewer: Client) -> None:
    commit = world.proposal.head_commit
    address = f"files/history/file/?commit={commit}&name=prompts/role.md&path=prompts/role.md"

    assert viewer.get(world.url(address), headers=HTMX).status_code == 200
    assert viewer.get(world.url(address.replace(commit, "nowhere")), headers=HTMX).status_code == 404
