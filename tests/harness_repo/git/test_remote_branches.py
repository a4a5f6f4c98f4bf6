"""Which branch of a remote is our main, and what a push calls ours there."""

from pathlib import Path

import pytest

from harness_repo.git.errors import BadRef, MissingRef, StaleBase
from harness_repo.git.objects import Author
from harness_repo.git.remotes import (
    Remote,
    advance_to_remote,
    fetch_remote,
    import_repository,
    push_remote,
    remote_branch,
)
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import FILES, run_git


@pytest.fixture
def elsewhere(tmp_path: Path, author: Author) -> HarnessRepository:
    return HarnessRepository.create(tmp_path / "them.git", FILES, author=author, message="Theirs")


@pytest.fixture
def mine(tmp_path: Path, elsewhere: HarnessRepository) -> HarnessRepository:
    return import_repository(elsewhere.path, tmp_path / "mine.git")


def remote(elsewhere: HarnessRepository) -> Remote:
    return Remote("team", str(elsewhere.path))


def test_main_advances_to_the_remote_when_it_builds_on_ours(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author
) -> None:
    new = elsewhere.commit("main", {"a": b"1"}, parent="main", author=author, message="more")
    fetch_remote(mine, remote(elsewhere))
    assert advance_to_remote(mine, remote(elsewhere)) == new == mine.resolve("main")
    assert advance_to_remote(mine, remote(elsewhere)) == new
    mine.commit("main", {"ours": b"1"}, parent="main", author=author, message="ours")
    elsewhere.commit("main", {"theirs": b"1"}, parent="main", author=author, message="theirs")
    fetch_remote(mine, remote(elsewhere))
    with pytest.raises(StaleBase):
        advance_to_remote(mine, remote(elsewhere))


def rename_main(elsewhere: HarnessRepository, name: str) -> None:
    run_git(elsewhere.path, "branch", "-m", "main", name)
    run_git(elsewhere.path, "symbolic-ref", "HEAD", f"refs/heads/{name}")


def test_a_remote_whose_main_has_another_name_is_advanced_to_and_pushed_to(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author
) -> None:
    rename_main(elsewhere, "trunk")
    new = elsewhere.commit("trunk", {"a": b"1"}, parent="trunk", author=author, message="more")
    assert fetch_remote(mine, remote(elsewhere)).branches == {"trunk": new}
    assert remote_branch(mine, remote(elsewhere)) == "trunk"
    assert advance_to_remote(mine, remote(elsewhere)) == new == mine.resolve("main")
    ours = mine.commit("main", {"ours": b"1"}, parent="main", author=author, message="ours")
    assert push_remote(mine, remote(elsewhere), ["main"]) == ["main:trunk"]
    assert elsewhere.branches() == {"trunk": ours}
    run_git(mine.path, "gc", "--quiet")
    assert remote_branch(mine, remote(elsewhere)) == "trunk"
    assert run_git(mine.path, "fsck", "--strict", "--no-dangling") == b""


def test_a_first_push_asks_what_the_branch_is_called(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author
) -> None:
    rename_main(elsewhere, "trunk")
    ours = mine.commit("main", {"ours": b"1"}, parent="main", author=author, message="ours")
    push_remote(mine, remote(elsewhere), ["main"])
    assert elsewhere.branches() == {"trunk": ours}


def test_the_configured_branch_wins_and_a_missing_one_is_said_with_those_that_are(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author
) -> None:
    live = elsewhere.commit("live", {"a": b"1"}, parent="main", author=author, message="live")
    place = Remote("team", str(elsewhere.path), branch="live")
    fetch_remote(mine, place)
    assert advance_to_remote(mine, place) == live
    with pytest.raises(MissingRef, match="'gone' was fetched; there are: live, main"):
        advance_to_remote(mine, Remote("team", str(elsewhere.path), branch="gone"))


def test_an_empty_remote_is_given_main(mine: HarnessRepository, tmp_path: Path) -> None:
    empty = tmp_path / "empty.git"
    empty.mkdir()
    run_git(empty, "init", "--quiet", "--bare", "--initial-branch=trunk")
    assert push_remote(mine, Remote("team", str(empty)), ["main"]) == ["main"]


def test_a_push_under_another_name(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author
) -> None:
    before = elsewhere.resolve("main")
    ours = mine.commit("main", {"ours": b"1"}, parent="main", author=author, message="ours")
    mine.tag("release/1", "main", "One", author)
    pushed = push_remote(mine, remote(elsewhere), ["main:workbench/main", "release/1:v1"])
    assert pushed == ["main:workbench/main", "release/1:v1"]
    assert elsewhere.branches() == {"main": before, "workbench/main": ours}
    assert elsewhere.list_tags() == {"v1": ours}


@pytest.mark.parametrize(
    "spec", ["main:", ":main", "+main:x", "main:-x", "main:a:b", "main:refs/heads/x", "--all"]
)
def test_what_is_no_pair_of_names_is_not_pushed(
    mine: HarnessRepository, elsewhere: HarnessRepository, spec: str
) -> None:
    before = elsewhere.branches()
    with pytest.raises((BadRef, MissingRef)):
        push_remote(mine, remote(elsewhere), [spec])
    assert elsewhere.branches() == before
