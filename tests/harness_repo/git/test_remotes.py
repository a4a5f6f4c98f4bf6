import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_repo.git.addresses import RemotePolicy
from harness_repo.git.errors import BadRemote, MissingRef, RemoteFailed, RepoBusy, RepoExists, StaleBase
from harness_repo.git.locks import hold_lock
from harness_repo.git.objects import Author
from harness_repo.git.remotes import (
    Remote,
    advance_to_remote,
    fetch_remote,
    import_repository,
    push_remote,
)
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import FILES, run_git
from tests.harness_repo.git_server import GitServer, serve_git

TOKEN = "t0p-secret"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgSign=false")
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Somebody's working copy, with two commits, a tag and a branch."""
    folder = tmp_path / "their work"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=trunk")
    for number in (1, 2):
        (folder / "SKILL.md").write_text(f"version {number}\n")
        git(folder, "add", ".")
        git(folder, "commit", "--quiet", "-m", f"Version {number}")
        git(folder, "tag", f"v{number}")
    git(folder, "branch", "feature/x", "v1")
    return folder


@pytest.fixture
def elsewhere(tmp_path: Path, author: Author) -> HarnessRepository:
    return HarnessRepository.create(tmp_path / "served/them.git", FILES, author=author, message="Theirs")


@pytest.fixture
def mine(tmp_path: Path, elsewhere: HarnessRepository) -> HarnessRepository:
    return import_repository(elsewhere.path, tmp_path / "mine.git")


@pytest.fixture
def server(elsewhere: HarnessRepository) -> Iterator[GitServer]:
    run_git(elsewhere.path, "config", "http.receivepack", "true")
    with serve_git(elsewhere.path.parent) as state:
        yield state


def remote(elsewhere: HarnessRepository) -> Remote:
    return Remote("team", str(elsewhere.path))


def remote_over_http(server: GitServer, token: str = "") -> Remote:
    return Remote(
        "team", f"{server.url}/them.git", RemotePolicy(protocols=("http",), token=token, seconds=20)
    )


def test_an_import_keeps_the_history_and_is_sound(checkout: Path, tmp_path: Path) -> None:
    made = import_repository(checkout, tmp_path / "made.git")
    assert made.resolve("main") == git(checkout, "rev-parse", "trunk")
    assert [commit.subject for commit in made.log("main")] == ["Version 2", "Version 1"]
    assert made.files("main") == {"SKILL.md": b"version 2\n"}
    assert run_git(made.path, "for-each-ref", "--format=%(refname)").decode().split() == [
        "refs/heads/main",
        "refs/remotes/origin/feature/x",
        "refs/remotes/origin/trunk",
    ]
    assert run_git(made.path, "fsck", "--strict") == b""


@pytest.mark.parametrize("ref", ["feature/x", "v1", "commit", "short"])
def test_an_import_starts_where_it_is_told(checkout: Path, tmp_path: Path, ref: str) -> None:
    wanted = git(checkout, "rev-parse", "v1")
    names = {"commit": wanted, "short": wanted[:9]}
    made = import_repository(checkout, tmp_path / "made.git", ref=names.get(ref, ref))
    assert made.resolve("main") == wanted


def test_what_is_imported_can_be_read_and_written(checkout: Path, tmp_path: Path, author: Author) -> None:
    made = import_repository(checkout, tmp_path / "made.git")
    run_git(made.path, "pack-refs", "--all")
    assert made.read_file("main", "SKILL.md") == b"version 2\n"
    sha = made.commit("b", {"skills/x/SKILL.md": b"x"}, parent="main", author=author, message="m")
    assert set(made.snapshot(sha).files) == {"SKILL.md", "skills/x/SKILL.md"}


def test_a_failed_import_leaves_nothing(checkout: Path, tmp_path: Path) -> None:
    for source, ref, expected in (
        (tmp_path / "nowhere", None, RemoteFailed),
        (checkout, "not-there", MissingRef),
        ("https://example.org/x.git", None, BadRemote),
        ("ext::touch x", None, BadRemote),
    ):
        with pytest.raises(expected):
            import_repository(source, tmp_path / "made.git", ref=ref)
    assert not list(tmp_path.glob("*made.git*"))


def test_an_import_refuses_a_path_that_is_taken(
    checkout: Path, tmp_path: Path, repo: HarnessRepository
) -> None:
    with pytest.raises(RepoExists):
        import_repository(checkout, repo.path)


def test_broken_trees_do_not_come_in(checkout: Path, tmp_path: Path) -> None:
    blob = git(checkout, "rev-parse", "HEAD:SKILL.md")
    # What `git mktree` refuses to write is written as it would be by an attacker's own program.
    data = b"100644 ..\0" + bytes.fromhex(blob)
    command = ["git", "-C", str(checkout), "hash-object", "-w", "-t", "tree", "--literally", "--stdin"]
    tree = subprocess.run(command, input=data, check=True, capture_output=True).stdout.decode().strip()
    git(checkout, "update-ref", "refs/heads/evil", git(checkout, "commit-tree", "-m", "evil", tree))
    with pytest.raises(RemoteFailed, match="hasDotdot"):
        import_repository(checkout, tmp_path / "made.git")


def test_hooks_and_settings_of_the_source_are_not_run(checkout: Path, tmp_path: Path) -> None:
    marker = tmp_path / "ran"
    git(checkout, "config", "uploadpack.packObjectsHook", f"touch '{marker}';")
    import_repository(checkout, tmp_path / "made.git")
    assert not marker.exists()


def test_a_fetch_lands_beside_our_branches(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author
) -> None:
    before = mine.resolve("main")
    new = elsewhere.commit("main", {"a": b"1"}, parent="main", author=author, message="more")
    side = elsewhere.commit("side/x", {"b": b"1"}, parent="main", author=author, message="side")
    assert fetch_remote(mine, remote(elsewhere)).branches == {"main": new, "side/x": side}
    assert mine.resolve("main") == before
    assert mine.resolve("refs/remotes/team/main") == new
    elsewhere.delete_branch("side/x")
    fetch_remote(mine, remote(elsewhere))
    with pytest.raises(MissingRef):
        mine.resolve("refs/remotes/team/side/x")
    assert b"refs/fetching" not in run_git(mine.path, "for-each-ref")


def test_branches_that_are_refused_here_are_said(
    mine: HarnessRepository, elsewhere: HarnessRepository
) -> None:
    run_git(elsewhere.path, "update-ref", "refs/heads/-option", elsewhere.resolve("main"))
    result = fetch_remote(mine, remote(elsewhere))
    assert (list(result.branches), result.skipped) == (["main"], ("-option",))


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


def test_a_push_never_writes_over_what_the_remote_has(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author
) -> None:
    sha = mine.commit("proposal/1-x", {"a": b"1"}, parent="main", author=author, message="mine")
    mine.tag("release/1", "main", "One", author)
    push_remote(mine, remote(elsewhere), ["proposal/1-x", "release/1"])
    assert elsewhere.resolve("proposal/1-x") == sha
    assert elsewhere.list_tags() == {"release/1": mine.resolve("main")}
    theirs = elsewhere.commit("proposal/1-x", {"b": b"1"}, parent=sha, author=author, message="theirs")
    mine.commit("proposal/1-x", {"c": b"1"}, parent=sha, author=author, message="mine again")
    mine.commit("other", {"c": b"1"}, parent=sha, author=author, message="other")
    with pytest.raises(StaleBase):
        push_remote(mine, remote(elsewhere), ["other", "proposal/1-x"])
    assert elsewhere.branches() == {"main": elsewhere.resolve("main"), "proposal/1-x": theirs}
    with pytest.raises(MissingRef):
        push_remote(mine, remote(elsewhere), ["nothing"])


def test_a_push_to_a_folder_runs_no_hook_there(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author, tmp_path: Path
) -> None:
    hook = elsewhere.path / "hooks/post-receive"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/ran'\n")
    hook.chmod(0o755)
    mine.commit("b", {"a": b"1"}, parent="main", author=author, message="mine")
    push_remote(mine, remote(elsewhere), ["b"])
    assert "b" in elsewhere.branches()
    assert not (tmp_path / "ran").exists()


def test_the_token_goes_to_the_server_and_nowhere_else(
    mine: HarnessRepository, server: GitServer, author: Author
) -> None:
    server.token = TOKEN
    fetch_remote(mine, remote_over_http(server, TOKEN))
    sha = mine.commit("b", {"a": b"1"}, parent="main", author=author, message="mine")
    push_remote(mine, remote_over_http(server, TOKEN), ["b"])
    assert HarnessRepository(server.root / "them.git").resolve("b") == sha
    assert set(server.signed) == {f"x-access-token:{TOKEN}"}
    assert not [
        path for path in mine.path.rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]
    server.token = "another"
    with pytest.raises(RemoteFailed) as caught:
        fetch_remote(mine, remote_over_http(server, TOKEN))
    assert TOKEN not in str(caught.value)


def test_a_redirect_is_not_followed(mine: HarnessRepository, server: GitServer, tmp_path: Path) -> None:
    with serve_git(tmp_path) as other:
        server.redirect = other.url
        with pytest.raises(RemoteFailed):
            fetch_remote(mine, remote_over_http(server, TOKEN))
        assert other.paths == []


def test_a_server_that_says_nothing_is_given_up(mine: HarnessRepository) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/x.git"
        policy = RemotePolicy(protocols=("http",), seconds=0.5)
        began = time.monotonic()
        with pytest.raises(RemoteFailed, match="more than"):
            fetch_remote(mine, Remote("team", address, policy))
        assert time.monotonic() - began < 5


def test_one_fetch_at_a_time(mine: HarnessRepository, elsewhere: HarnessRepository) -> None:
    with hold_lock(mine.path, "workbench-fetch.lock", seconds=1), pytest.raises(RepoBusy):
        fetch_remote(mine, remote(elsewhere))


def test_what_a_killed_fetch_left_is_cleared(mine: HarnessRepository, elsewhere: HarnessRepository) -> None:
    run_git(mine.path, "update-ref", "refs/fetching/dead/heads/x", mine.resolve("main"))
    (mine.path / "refs/fetching/dead/heads/y.lock").touch()
    fetch_remote(mine, remote(elsewhere))
    assert not (mine.path / "refs/fetching").exists()
