import os
import socket
import subprocess
from pathlib import Path

import pytest

from harness_repo import folder as folder_module
from harness_repo.folder import NotReadable, git_folder, read_folder, read_source
from harness_repo.git.errors import BadRef, MissingRef
from tests.harness_repo.build import run_git


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def git(place: Path, *arguments: str) -> str:
    return run_git(place / ".git", "--work-tree", str(place), *arguments).decode().strip()


@pytest.fixture
def committed(tmp_path: Path) -> Path:
    place = write(tmp_path / "work", {"a": "committed", "b/c": "2"})
    subprocess.run(["git", "init", "-q", "-b", "trunk", str(place)], check=True)
    git(place, "add", "--all")
    git(place, "commit", "-q", "-m", "first")
    return write(place, {"a": "changed"})


def test_everything_in_a_folder_is_read_and_links_are_not_followed(tmp_path: Path) -> None:
    write(tmp_path, {"a/b": "1", ".hidden/c": "2", ".git/config": "secret"})
    (tmp_path / "a" / "link").symlink_to("/etc")
    (tmp_path / "a" / "b").chmod(0o755)
    snapshot = read_folder(tmp_path)
    assert snapshot.files == {"a/b": b"1", ".hidden/c": b"2"}
    assert snapshot.links == {"a/link": "/etc"}
    assert snapshot.executables == {"a/b"}
    assert snapshot.skipped == {}


def test_what_cannot_be_read_is_named_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"a": "12345678", "b": "1234", "z": "1234"})
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr(folder_module, "MAX_FILE_BYTES", 7)
    monkeypatch.setattr(folder_module, "MAX_TOTAL_BYTES", 7)
    # A path of a socket is limited to 107 bytes.
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        snapshot = read_folder(tmp_path)
    assert snapshot.files == {"b": b"1234"}
    assert sorted(snapshot.skipped) == ["a", "pipe", "socket", "z"]


def test_repositories_inside_are_submodules(tmp_path: Path) -> None:
    write(tmp_path, {"in/.git/HEAD": "x", "in/file": "x", "old/.git": "gitdir: ../x", "old/file": "x"})
    (tmp_path / "empty").mkdir()
    (tmp_path / "named").mkdir()
    (tmp_path / ".gitmodules").write_text('[submodule "n"]\n\tpath = named\n')
    snapshot = read_folder(tmp_path)
    assert sorted(snapshot.submodules) == ["in", "named", "old"]
    assert sorted(snapshot.files) == [".gitmodules"]


def test_names_that_are_no_utf8_are_kept(tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")).write_text("x")
    assert read_folder(tmp_path).files == {"\udcff": b"x"}


def test_a_working_tree_is_read_as_it_lies_there_and_a_ref_as_committed(committed: Path) -> None:
    lying, at_head = read_source(committed), read_source(committed, "trunk")
    assert (lying.commit, lying.snapshot.files["a"]) == ("", b"changed")
    assert (at_head.commit, at_head.snapshot.files["a"]) == (
        git(committed, "rev-parse", "HEAD"),
        b"committed",
    )


def test_a_bare_repository_is_read_at_head_or_at_a_ref(committed: Path, tmp_path: Path) -> None:
    git(committed, "commit", "-q", "-a", "-m", "second")
    bare = tmp_path / "bare.git"
    run_git(bare, "clone", "-q", "--bare", str(committed), str(bare))
    first = git(committed, "rev-parse", "HEAD~1")
    assert read_source(bare).snapshot.files["a"] == b"changed"
    assert read_source(bare, first).snapshot.files["a"] == b"committed"


def test_a_further_working_tree_is_read_too(committed: Path, tmp_path: Path) -> None:
    git(committed, "worktree", "add", "-q", str(tmp_path / "more"), "-b", "other")
    assert read_source(tmp_path / "more", "other").snapshot.files["a"] == b"committed"
    assert git_folder(tmp_path / "more") is not None


@pytest.mark.parametrize(("ref", "error"), [("nowhere", MissingRef), ("--help", BadRef), ("a..b", BadRef)])
def test_a_ref_that_is_none_is_told(committed: Path, ref: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        read_source(committed, ref)


def test_a_plain_folder_has_no_refs_and_a_file_is_no_folder(tmp_path: Path) -> None:
    write(tmp_path, {"plain/a": "1"})
    with pytest.raises(NotReadable, match="no git repository"):
        read_source(tmp_path / "plain", "main")
    with pytest.raises(NotReadable, match="not a folder"):
        read_source(tmp_path / "plain" / "a")
