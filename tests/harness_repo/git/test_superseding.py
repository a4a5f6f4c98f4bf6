"""Two histories of a branch become one, and a push that knows what it expects."""

from pathlib import Path

import pytest

from harness_repo.git.addresses import RemotePolicy
from harness_repo.git.errors import MissingRef, StaleBase
from harness_repo.git.objects import Author
from harness_repo.git.remotes import Remote, fetch_remote, fetched_branches, import_repository, push_remote
from harness_repo.git.repository import HarnessRepository
from harness_repo.git.superseding import build_superseding

EVE = Author("Eve", "eve@example.org")


@pytest.fixture
def ours(tmp_path: Path) -> HarnessRepository:
    return HarnessRepository.create(tmp_path / "ours.git", {"a": b"0"}, author=EVE, message="first")


@pytest.fixture
def remote(ours: HarnessRepository, tmp_path: Path) -> Remote:
    import_repository(ours.path, tmp_path / "there.git")
    return Remote("team", str(tmp_path / "there.git"), RemotePolicy())


def add(repository: HarnessRepository, content: bytes, parent: str = "main") -> str:
    return repository.commit("x/1", {"a": content}, parent=parent, author=EVE, message="m")


def test_the_other_history_is_contained_and_changes_nothing(ours: HarnessRepository) -> None:
    one = add(ours, b"1")
    other = ours.commit("other", {"b": b"2"}, parent="main", author=EVE, message="m")
    both = build_superseding(ours, one, other, author=EVE, message="keep ours")
    assert ours.files(both) == ours.files(one)
    assert ours.is_ancestor(one, both)
    assert ours.is_ancestor(other, both)
    assert ours.resolve("x/1") == one
    with pytest.raises(MissingRef):
        build_superseding(ours, one, "1" * 40, author=EVE, message="m")


def test_what_was_pushed_is_known_without_a_fetch(ours: HarnessRepository, remote: Remote) -> None:
    one = add(ours, b"1")
    assert fetched_branches(ours, "team") == {}
    push_remote(ours, remote, ["x/1"], expected={"x/1": one})
    assert fetched_branches(ours, "team", "x/") == {"x/1": one}
    fetch_remote(ours, remote)
    assert fetched_branches(ours, "team").keys() == {"main", "x/1"}


def test_a_branch_that_is_elsewhere_than_expected_is_not_pushed(
    ours: HarnessRepository, remote: Remote
) -> None:
    one = add(ours, b"1")
    add(ours, b"2", parent="x/1")
    with pytest.raises(StaleBase, match="moved on"):
        push_remote(ours, remote, ["x/1"], expected={"x/1": one})
    assert "x/1" not in HarnessRepository(remote.address).branches()
