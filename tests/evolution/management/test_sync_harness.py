"""`sync_harness` against a real repository elsewhere."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from evolution.actions.remotes import advance_harness, fetch_harness, push_harness
from evolution.actors import NotAllowed
from evolution.loop import steps
from evolution.loop.authors import author_of
from evolution.loop.lineage import find_live_steps, find_unreleased_main
from evolution.loop.repositories import open_repository
from evolution.models import Event, Harness, Proposal
from harness_repo.git.errors import MissingRef
from harness_repo.git.remotes import import_repository
from harness_repo.git.repository import HarnessRepository
from tests.evolution.measured import ANNA, DEV, make_harness, make_proposal, teach

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return make_harness()


@pytest.fixture
def elsewhere(harness: Harness, tmp_path: Path, settings: Settings) -> HarnessRepository:
    settings.HARNESS_REMOTES = {harness.name: {"url": str(tmp_path / "there.git"), "name": "team"}}
    return import_repository(open_repository(harness).path, tmp_path / "there.git")


def sync(*arguments: Any) -> str:
    out = io.StringIO()
    call_command("sync_harness", *arguments, stdout=out)
    return out.getvalue()


def test_a_fetch_moves_nothing_of_ours(harness: Harness, elsewhere: HarnessRepository) -> None:
    main = open_repository(harness).resolve("main")
    new = elsewhere.commit("main", {"a": b"1"}, parent="main", author=author_of(DEV), message="theirs")
    assert f"fetched main {new[:12]}" in sync(harness.name, "--fetch")
    assert open_repository(harness).resolve("main") == main
    assert open_repository(harness).resolve("refs/remotes/team/main") == new
    assert Event.objects.get(verb="harness.fetched").data["branches"] == {"main": new}


def test_what_is_made_live_is_a_release_and_steps_go_on(
    harness: Harness, elsewhere: HarnessRepository
) -> None:
    new = elsewhere.commit("main", {"a": b"1"}, parent="main", author=author_of(DEV), message="theirs")
    assert "live: release/2" in sync(harness.name, "--advance")
    release = harness.releases.get(number=2)
    assert (release.commit, release.kind, release.step) == (new, "remote", None)
    assert find_unreleased_main(harness) == ""
    assert find_live_steps(harness, new) == set()
    assert "live already" in sync(harness.name, "--advance")
    assert steps.merge_step(DEV, harness, [make_proposal(harness, teach(1))]).base_commit == new


def test_main_with_work_of_its_own_is_not_moved(harness: Harness, elsewhere: HarnessRepository) -> None:
    repository = open_repository(harness)
    main = repository.commit("main", {"b": b"1"}, parent="main", author=author_of(DEV), message="ours")
    repository.tag("release/2", main, "ours", author_of(DEV))
    harness.releases.create(number=2, kind="promotion", commit=main, tag="release/2", actor="x")
    elsewhere.commit("main", {"a": b"1"}, parent="main", author=author_of(DEV), message="theirs")
    with pytest.raises(CommandError, match="does not have"):
        sync(harness.name, "--advance")
    with pytest.raises(CommandError, match="other work"):
        sync(harness.name, "--push")
    assert repository.resolve("main") == main
    # The way out that both errors say.
    assert sync(harness.name, "--push", "main:workbench") == "pushed main:workbench\n"
    merged = elsewhere.merge("main", "main", ["workbench"], author=author_of(DEV), message="both")
    assert "live: release/3" in sync(harness.name, "--advance")
    assert repository.resolve("main") == merged
    assert {"a", "b"} <= repository.files("main").keys()


def test_both_errors_of_a_divergence_say_the_way_out(
    harness: Harness, elsewhere: HarnessRepository, settings: Settings
) -> None:
    settings.HARNESS_REMOTES[harness.name]["branch"] = "main"
    repository = open_repository(harness)
    main = repository.commit("main", {"b": b"1"}, parent="main", author=author_of(DEV), message="ours")
    harness.releases.create(number=2, kind="promotion", commit=main, tag="release/2", actor="x")
    repository.tag("release/2", main, "ours", author_of(DEV))
    elsewhere.commit("main", {"a": b"1"}, parent="main", author=author_of(DEV), message="theirs")
    for arguments in (["--advance"], ["--push"]):
        with pytest.raises(CommandError, match=f"sync_harness {harness.name} --push main:workbench"):
            sync(harness.name, *arguments)


def test_a_branch_that_the_remote_lacks_is_said_with_those_that_it_has(
    harness: Harness, elsewhere: HarnessRepository, settings: Settings
) -> None:
    settings.HARNESS_REMOTES[harness.name]["branch"] = "live"
    with pytest.raises(CommandError, match=r"no branch 'live'.* main.*HARNESS_REMOTES"):
        sync(harness.name, "--advance")


def test_what_was_done_as_one_object(harness: Harness, elsewhere: HarnessRepository) -> None:
    new = elsewhere.commit("main", {"a": b"1"}, parent="main", author=author_of(DEV), message="theirs")
    assert json.loads(sync(harness.name, "--advance", "--push", "--json")) == {
        "harness": harness.name,
        "fetched": {"main": new},
        "skipped": {},
        "changed_outside": [],
        "live": {"tag": "release/2", "commit": new},
        "pushed": ["main", "release/1", "release/2"],
    }


def test_an_error_is_in_the_object_beside_what_was_done(
    harness: Harness, elsewhere: HarnessRepository
) -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as left:
        call_command("sync_harness", harness.name, "--fetch", "--push", "nothing", "--json", stdout=out)
    done = json.loads(out.getvalue())
    assert (left.value.code, list(done["fetched"])) == (1, ["main"])
    assert "nothing" in done["error"]


def test_a_push_takes_main_and_the_releases(harness: Harness, elsewhere: HarnessRepository) -> None:
    assert "pushed main, release/1" in sync(harness.name, "--push")
    assert elsewhere.list_tags() == {"release/1": elsewhere.resolve("main")}
    with pytest.raises(MissingRef):
        elsewhere.resolve("proposal/9")
    proposal = make_proposal(harness, teach(1))
    sync(harness.name, "--push", proposal.branch)
    assert elsewhere.resolve(proposal.branch) == proposal.head_commit


def test_only_operators_reach_out(harness: Harness, elsewhere: HarnessRepository) -> None:
    for action in (fetch_harness, push_harness, advance_harness):
        with pytest.raises(NotAllowed):
            action(DEV, harness)
    fetch_harness(ANNA, harness)


def test_a_command_without_a_deed_or_a_harness_is_refused() -> None:
    for arguments in (["shop"], ["nobody", "--fetch"]):
        with pytest.raises(CommandError):
            sync(*arguments)


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        (None, "no remote"),
        ("text", "write"),
        ({"url": "ext::sh -c x"}, "not an address"),
        ({"url": "https://me:hunter2@example.org/x"}, "not an address"),
        ({"url": "http://example.org/x"}, "not allowed"),
        ({"url": "https://example.org/x", "protocols": ["ssh"]}, "not allowed"),
        ({"url": "https://example.org/x", "token_env": "NO_SUCH_VARIABLE"}, "is not set"),
        ({"url": "https://example.org/x", "token": "hunter2"}, "write"),
        ({"url": "https://example.org/x", "name": "--x"}, "not a usable"),
        ({"url": "https://example.org/x", "seconds": 0}, "write"),
        ({"url": "https://example.org/x", "branch": 1}, "write"),
        ({"url": "https://example.org/x", "branch": "a:b"}, "not a usable"),
    ],
)
def test_a_remote_that_cannot_be_used_is_said_without_its_secret(
    harness: Harness, settings: Settings, entry: object, reason: str
) -> None:
    settings.HARNESS_REMOTES = {harness.name: entry} if entry else {}
    with pytest.raises(CommandError, match=reason) as caught:
        sync(harness.name, "--fetch")
    assert "hunter2" not in str(caught.value)


def test_packing_needs_no_remote(harness: Harness) -> None:
    repository = open_repository(harness)
    files = repository.files("main")
    assert sync(harness.name, "--pack") == "packed\n"
    assert list(repository.path.glob("objects/pack/*.pack"))
    assert repository.files("main") == files
    assert Event.objects.filter(verb="harness.packed").count() == 1


def test_branches_of_proposals_go_there_and_come_back(harness: Harness, elsewhere: HarnessRepository) -> None:
    proposal = make_proposal(harness, teach(1))
    assert sync(harness.name, "--proposals") == f"pushed {proposal.branch} {proposal.head_commit[:12]}\n"
    elsewhere.commit(
        proposal.branch, {"prompts/role.md": b"1"}, parent=proposal.branch, author=author_of(DEV), message="m"
    )
    assert f"proposal {proposal.pk} was changed outside" in sync(harness.name, "--fetch")
    with pytest.raises(CommandError, match="no proposal 0"):
        sync(harness.name, "--proposals", "0")


def test_the_text_of_a_pull_request_needs_no_remote(harness: Harness) -> None:
    proposal = make_proposal(harness, teach(1), "teach @admin it")
    text = sync(harness.name, "--pull-request", proposal.pk)
    assert text.startswith("teach ＠admin it\n\n")
    assert f"Workbench-Commit: {proposal.head_commit}" in text
    with pytest.raises(CommandError, match="no proposal 0"):
        sync(harness.name, "--pull-request", "0")


def test_a_pull_request_of_commits_that_git_has_no_longer_is_an_error_in_words(harness: Harness) -> None:
    proposal = make_proposal(harness, teach(1), "teach it")
    Proposal.objects.filter(pk=proposal.pk).update(head_commit="e" * 40)
    with pytest.raises(CommandError, match="eeeeeeee"):
        sync(harness.name, "--pull-request", proposal.pk)
