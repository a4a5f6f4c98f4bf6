"""The branch on a proposal's page: what others did to it, the remote, and the text of a pull request."""

import html
import shutil
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import Settings

from evolution.actions.branches import push_proposals
from evolution.actors import SYSTEM
from evolution.adapters.remotes import read_remote
from evolution.loop.outside import fetch_branches, follow_branches
from evolution.loop.repositories import open_repository
from evolution.loop.version_size import LARGEST_FILE
from evolution.models import Job, Proposal
from harness_repo.git.objects import Author
from harness_repo.git.remotes import import_repository
from harness_repo.git.repository import HarnessRepository
from tests.evolution.actions.branching import commit_odd_path
from tests.evolution.measured import DEV, teach
from tests.workbench.views.conftest import World
from tests.workbench.views.pages import list_pages

EVE = Author("Eve & Co", "eve@example.org")
ROLE = "prompts/role.md"


@pytest.fixture
def there(world: World, tmp_path: Path, settings: Settings) -> HarnessRepository:
    settings.HARNESS_REMOTES = {"shop": {"url": str(tmp_path / "there.git"), "name": "team"}}
    return import_repository(open_repository(world.harness).path, tmp_path / "there.git")


def edit(repository: HarnessRepository, world: World, content: bytes, path: str = ROLE) -> str:
    branch = world.proposal.branch
    return repository.commit(branch, {path: content}, parent=branch, author=EVE, message="outside")


def page(client: Client, world: World, path: str = "") -> str:
    return client.get(world.url(f"proposals/{world.proposal.pk}/{path}")).content.decode()


def post(client: Client, world: World, action: str, **fields: str) -> str:
    address = world.url(f"proposals/{world.proposal.pk}/{action}/")
    return client.post(address, fields, follow=True).content.decode()


def test_a_branch_is_pushed_and_its_request_begun(
    world: World, there: HarnessRepository, developer: Client
) -> None:
    assert "Not pushed to team yet" in page(developer, world)
    assert "being pushed" in post(developer, world, "push")
    assert Job.objects.filter(kind="push").count() == 1
    push_proposals(DEV, world.harness, [world.proposal.pk])
    assert "team has this version" in page(developer, world)
    assert "being fetched" in post(developer, world, "fetch")


def test_without_a_remote_the_page_says_so(world: World, developer: Client) -> None:
    assert "has no remote" in page(developer, world)
    assert "has no remote" in post(developer, world, "push")
    assert not Job.objects.filter(kind="push").exists()


def test_a_change_from_outside_is_marked_with_its_author(world: World, developer: Client) -> None:
    edit(open_repository(world.harness), world, b"on: push\n", ".github/run.yml")
    follow_branches(SYSTEM, world.harness)
    shown = page(developer, world)
    assert "changed outside by Eve &amp; Co" in shown
    assert ".github/run.yml is not a path inside the harness" in shown
    head = Proposal.objects.get(pk=world.proposal.pk).head_commit
    assert "look at it again" in post(developer, world, "outside", choice="acknowledge", head="0" * 40)
    post(developer, world, "outside", choice="acknowledge", head=head)
    assert "changed outside by" not in page(developer, world)


@pytest.mark.parametrize(("choice", "kept"), [("theirs", teach(1, 9)), ("ours", teach(1, 8))])
def test_of_two_histories_one_is_chosen(
    world: World, there: HarnessRepository, developer: Client, choice: str, kept: bytes
) -> None:
    push_proposals(DEV, world.harness, [world.proposal.pk])
    theirs = edit(there, world, teach(1, 9))
    repository = open_repository(world.harness)
    edit(repository, world, teach(1, 8))
    fetch_branches(SYSTEM, world.harness, read_remote(world.harness))
    shown = page(developer, world)
    assert f'value="{theirs}"' in shown
    assert "each in its own way" in shown
    assert "Say which history counts" in post(developer, world, "outside", choice="both", head=theirs)
    post(developer, world, "outside", choice=choice, head=theirs)
    assert repository.read_file(world.proposal.branch, ROLE) == kept
    assert "each in its own way" not in page(developer, world)


def test_the_text_of_a_request_is_shown_and_copied(world: World, viewer: Client) -> None:
    Proposal.objects.filter(pk=world.proposal.pk).update(title="<b>teach</b> @all")
    assert "&lt;b&gt;teach&lt;/b&gt; ＠all" in page(viewer, world, "pull-request/")
    assert page(viewer, world, "pull-request/?part=title") == "<b>teach</b> ＠all"
    assert page(viewer, world, "pull-request/?part=body").endswith(f"{world.proposal.head_commit}\n")
    Proposal.objects.filter(pk=world.proposal.pk).update(head_commit="")
    assert viewer.get(world.url(f"proposals/{world.proposal.pk}/pull-request/")).status_code == 302


def test_what_is_too_much_to_be_judged_is_said_and_left(world: World, developer: Client) -> None:
    head = edit(open_repository(world.harness), world, b"x\n" * LARGEST_FILE, "prompts/big.md")
    follow_branches(SYSTEM, world.harness)
    shown = page(developer, world)
    assert "prompts/big.md has 2,000,000 bytes" in shown
    assert 'value="ours"' in shown
    assert 'value="theirs"' not in shown
    assert "2,000,000 bytes" in post(developer, world, "approve", reviewed=world.proposal.head_commit)
    post(developer, world, "outside", choice="ours", head=head)
    assert "2,000,000 bytes" not in page(developer, world)


def test_commits_that_a_step_does_not_have_are_said(world: World, developer: Client) -> None:
    edit(open_repository(world.harness), world, teach(9))
    Proposal.objects.filter(pk=world.proposal.pk).update(state="in_step")
    assert "take the proposal out of the step" in page(developer, world)


def test_a_path_that_is_no_text_is_said_on_the_page(world: World, developer: Client) -> None:
    head = commit_odd_path(world.proposal)
    follow_branches(SYSTEM, world.harness)
    assert "can\u2019t be approved like this" in html.unescape(page(developer, world)).replace("'", "\u2019")
    assert "is not a path inside" in post(developer, world, "approve", reviewed=head)
    addresses = [address for name, address in list_pages(world).items() if name.startswith("proposal")]
    assert {developer.get(address).status_code for address in addresses} <= {200, 302, 404}


def test_the_text_leads_back_to_the_proposal_when_the_repository_is_gone(
    world: World, viewer: Client
) -> None:
    address = list_pages(world)["proposal_pull_request"]
    # Its flags are kept from now on.
    assert viewer.get(address).status_code == 200
    shutil.rmtree(open_repository(world.harness).path)

    assert viewer.get(address).status_code == 302
