import os
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness_repo.git.addresses import RemotePolicy
from harness_repo.git.errors import (
    BadRemote,
    MissingRef,
    RemoteFailed,
    RepoBusy,
    RepoExists,
    StaleBase,
    TooLarge,
)
from harness_repo.git.locks import hold_lock
from harness_repo.git.objects import Author
from harness_repo.git.remotes import (
    Remote,
    fetch_remote,
    import_repository,
    list_taken,
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
        "refs/source-tags/v1",
        "refs/source-tags/v2",
    ]
    assert run_git(made.path, "fsck", "--strict") == b""


def test_what_came_with_an_import_is_found_by_its_name(
    checkout: Path, tmp_path: Path, author: Author
) -> None:
    made = import_repository(checkout, tmp_path / "made.git")
    wanted = git(checkout, "rev-parse", "v1")
    assert made.resolve("origin/feature/x") == made.resolve("v1") == wanted
    assert list_taken(made) == (["origin/feature/x", "origin/trunk"], ["v1", "v2"])
    made.tag("v1", "main", "ours", author)
    made.commit("origin/feature/x", {"a": b"1"}, parent="main", author=author, message="ours")
    assert made.resolve("v1") == made.resolve("main") != wanted
    assert made.resolve("origin/feature/x") == made.branches()["origin/feature/x"]


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
        import_repository(checkout, tmp_path / "made.git", ref="evil")
    made = import_repository(checkout, tmp_path / "made.git")
    assert b"evil" not in run_git(made.path, "for-each-ref")
    result = fetch_remote(made, Remote("origin", str(checkout)))
    assert list(result.branches) == ["feature/x", "trunk"]
    assert "hasDotdot" in result.skipped["evil"]


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
    assert (list(result.branches), result.skipped) == (
        ["main"],
        {"-option": "not a name that can be taken here"},
    )


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


def test_a_branch_that_becomes_a_folder_of_branches_and_back_is_followed(
    mine: HarnessRepository, elsewhere: HarnessRepository
) -> None:
    head = elsewhere.resolve("main")
    for name in ("feature", "feature/x", "feature"):
        run_git(elsewhere.path, "update-ref", f"refs/heads/{name}", head)
        assert set(fetch_remote(mine, remote(elsewhere)).branches) == {"main", name}
        assert mine.resolve(f"refs/remotes/team/{name}") == head
        run_git(elsewhere.path, "update-ref", "-d", f"refs/heads/{name}")


@pytest.mark.parametrize("sign", ["\u0085", "\u2028", "\u2029"])
def test_a_branch_with_an_odd_line_end_in_its_name_is_left_out(
    mine: HarnessRepository, elsewhere: HarnessRepository, tmp_path: Path, sign: str
) -> None:
    run_git(elsewhere.path, "update-ref", f"refs/heads/a{sign}b", "main")
    result = fetch_remote(mine, remote(elsewhere))
    assert (list(result.branches), list(result.skipped)) == (["main"], [f"a{sign}b"])
    assert list(import_repository(elsewhere.path, tmp_path / "again.git").branches()) == ["main"]


def test_a_branch_that_cannot_be_brought_does_not_stop_the_others(
    mine: HarnessRepository, elsewhere: HarnessRepository, author: Author
) -> None:
    side = elsewhere.commit("side", {"b": b"1"}, parent="main", author=author, message="side")
    fetch_remote(mine, remote(elsewhere))
    broken = elsewhere.commit("broken", {"c": b"1"}, parent="main", author=author, message="broken")
    tree = run_git(elsewhere.path, "rev-parse", f"{broken}^{{tree}}").decode().strip()
    (elsewhere.path / "objects" / tree[:2] / tree[2:]).unlink()
    with (elsewhere.path / "packed-refs").open("a") as file:
        file.write(f"{side} refs/heads/{'x' * 253}\n")
    (elsewhere.path / "refs/heads/dangling").write_text("1" * 40 + "\n")
    result = fetch_remote(mine, remote(elsewhere))
    assert result.branches == {"main": elsewhere.resolve("main"), "side": side}
    assert {"broken", "x" * 253} <= set(result.skipped)


def test_an_import_does_not_need_the_head_of_the_source(elsewhere: HarnessRepository, tmp_path: Path) -> None:
    run_git(elsewhere.path, "symbolic-ref", "HEAD", "refs/heads/nothing")
    made = import_repository(elsewhere.path, tmp_path / "made.git", ref="main")
    assert made.resolve("main") == elsewhere.resolve("main")
    with pytest.raises(MissingRef):
        import_repository(elsewhere.path, tmp_path / "other.git")


def test_an_import_of_a_shallow_clone_says_what_to_do(checkout: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{checkout}", str(tmp_path / "shallow"))
    with pytest.raises(RemoteFailed, match="--unshallow"):
        import_repository(tmp_path / "shallow", tmp_path / "made.git")


def test_a_commit_that_only_a_tag_of_the_source_leads_to_is_there(
    elsewhere: HarnessRepository, tmp_path: Path, author: Author
) -> None:
    side = elsewhere.commit("side", {"b": b"1"}, parent="main", author=author, message="side")
    elsewhere.tag("v1", side, "One", author)
    elsewhere.delete_branch("side")
    made = import_repository(elsewhere.path, tmp_path / "made.git")
    assert made.resolve("refs/source-tags/v1") == side == made.resolve(side[:10])
    assert made.list_tags() == {}


def test_a_source_of_another_user_is_read(elsewhere: HarnessRepository, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    for path in [elsewhere.path, *elsewhere.path.rglob("*")]:
        os.chown(path, 65534, 65534)
    assert import_repository(elsewhere.path, tmp_path / "made.git").resolve("main")


def test_a_tree_that_stands_for_billions_of_files_does_not_come_in(
    elsewhere: HarnessRepository, tmp_path: Path
) -> None:
    tree = run_git(elsewhere.path, "rev-parse", "main^{tree}").decode().strip()
    for _ in range(9):
        entries = b"".join(b"40000 d%d\0" % number + bytes.fromhex(tree) for number in range(10))
        command = ["git", "-C", str(elsewhere.path), "hash-object", "-w", "-t", "tree", "--stdin"]
        tree = subprocess.run(command, input=entries, check=True, capture_output=True).stdout.decode().strip()
    bomb = run_git(elsewhere.path, "commit-tree", "-m", "bomb", tree).decode().strip()
    run_git(elsewhere.path, "update-ref", "refs/heads/bomb", bomb)
    with pytest.raises(TooLarge, match="tree of"):
        elsewhere.snapshot(bomb)
    with pytest.raises(TooLarge):
        import_repository(elsewhere.path, tmp_path / "made.git", ref="bomb")
    assert not list(tmp_path.glob("*made.git*"))


def test_no_program_that_a_target_on_this_machine_names_is_run(
    mine: HarnessRepository, tmp_path: Path, author: Author
) -> None:
    marker, target = tmp_path / "ran", tmp_path / "work"
    git(tmp_path, "clone", "-q", str(mine.path), str(target))
    other = HarnessRepository.create(tmp_path / "other.git", FILES, author=author, message="Other")
    (target / ".git/objects/info/alternates").write_text(f"{other.path}/objects\n")
    for key, value in {
        "core.alternateRefsCommand": f"touch '{marker}'; :",
        "receive.denyCurrentBranch": "updateInstead",
        "filter.x.smudge": f"touch '{marker}'; cat",
        "uploadpack.packObjectsHook": f"touch '{marker}';",
        "core.fsmonitor": f"touch '{marker}'; :",
        "receive.autogc": "true",
    }.items():
        git(target, "config", key, value)
    place = Remote("work", str(target))
    edits = {".gitattributes": b"*.md filter=x\n", "a.md": b"1\n"}
    mine.commit("side", edits, parent="main", author=author, message="side")
    push_remote(mine, place, ["side"])
    mine.commit("main", edits, parent="main", author=author, message="main")
    with pytest.raises(RemoteFailed):
        push_remote(mine, place, ["main"])
    fetch_remote(mine, place)
    assert not marker.exists()
