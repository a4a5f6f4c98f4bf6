import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness_repo import folder as folder_module
from harness_repo.folder import (
    MAX_DEPTH,
    NotReadable,
    _FolderReader,
    git_folder,
    read_folder,
    read_source,
)
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


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write(tmp_path / "place", {"a": "1", "z/b": "2"})
    outside = write(tmp_path / "outside", {"b": "secret"})
    take_all = _FolderReader._take_all

    def take_and_swap(reader: _FolderReader, folder: int, parts: tuple[str, ...]) -> list[tuple[str, ...]]:
        found = take_all(reader, folder, parts)
        if not parts:
            (place / "z").rename(tmp_path / "moved")
            (place / "z").symlink_to(outside)
        return found

    monkeypatch.setattr(_FolderReader, "_take_all", take_and_swap)
    snapshot = read_folder(place)
    assert (snapshot.files, list(snapshot.skipped)) == ({"a": b"1"}, ["z"])


def test_a_file_that_becomes_a_link_meanwhile_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = write(tmp_path / "place", {"a": "1"})
    secret = write(tmp_path, {"secret": "secret"}) / "secret"

    def swap(_reader: _FolderReader, _found: os.stat_result) -> str:
        (place / "a").unlink()
        (place / "a").symlink_to(secret)
        return ""

    monkeypatch.setattr(_FolderReader, "_refusal", swap)
    snapshot = read_folder(place)
    assert (snapshot.files, list(snapshot.skipped)) == ({}, ["a"])


def test_folders_without_end_are_read_as_deep_as_the_limit(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(MAX_DEPTH + 50):
        os.mkdir("a", dir_fd=folder)
        inner = os.open("a", os.O_RDONLY, dir_fd=folder)
        os.close(os.open("f", os.O_WRONLY | os.O_CREAT, dir_fd=folder))
        os.close(folder)
        folder = inner
    os.close(folder)
    snapshot = read_folder(tmp_path)
    assert len(snapshot.files) == MAX_DEPTH + 1
    assert list(snapshot.skipped) == ["/".join(["a"] * (MAX_DEPTH + 1))]


@pytest.fixture
def as_nobody(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder that can be read by somebody whom permissions hold for: root is let through."""
    tmp_path.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"ok": "1", "locked/a": "2", "listed/b": "3", "secret": "4"})
    for name, mode in (("locked", 0), ("listed", 0o444), ("secret", 0)):
        (tmp_path / name).chmod(mode)
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    yield Path()
    os.seteuid(user)
    for name in ("locked", "listed"):
        (tmp_path / name).chmod(0o755)


def test_what_nobody_may_read_is_named_and_the_rest_is_read(as_nobody: Path) -> None:
    snapshot = read_folder(as_nobody)
    assert snapshot.files == {"ok": b"1"}
    assert snapshot.skipped == dict.fromkeys(["listed/b", "locked", "secret"], "Permission denied")


@pytest.mark.parametrize(
    "text", [b"gitdir: a\0b", b"gitdir: " + b"a" * 3000, b"gitdir: nowhere", b"", b"\xff"]
)
def test_a_git_file_that_leads_nowhere_leaves_the_folder(tmp_path: Path, text: bytes) -> None:
    write(tmp_path, {"a": "1"})
    (tmp_path / ".git").write_bytes(text)
    source = read_source(tmp_path)
    assert source.snapshot.files == {"a": b"1"}
    assert "no repository of this folder" in source.note
    with pytest.raises(NotReadable, match="no repository of this folder"):
        read_source(tmp_path, "main")


def point_directly(place: Path, other: Path) -> None:
    (place / ".git").write_text(f"gitdir: {other}\n")


def point_as_a_worktree(place: Path, other: Path) -> None:
    """As git writes it for a further worktree, but for the other side."""
    write(
        place / "own",
        {"gitdir": str(place / ".git"), "commondir": str(other), "HEAD": "ref: refs/heads/trunk"},
    )
    (place / ".git").write_text(f"gitdir: {place / 'own'}\n")


def point_by_a_link(place: Path, other: Path) -> None:
    (place / ".git").symlink_to(other)


def point_by_links_inside(place: Path, other: Path) -> None:
    write(place, {".git/HEAD": "ref: refs/heads/trunk\n"})
    for name in ("objects", "refs"):
        (place / ".git" / name).symlink_to(other / name)


@pytest.mark.parametrize(
    "point", [point_directly, point_as_a_worktree, point_by_a_link, point_by_links_inside]
)
def test_the_repository_of_somebody_else_is_not_read(
    committed: Path, tmp_path: Path, point: Callable[[Path, Path], None]
) -> None:
    place = write(tmp_path / "place", {"mine": "1"})
    point(place, committed / ".git")
    assert git_folder(place) is None
    assert read_source(place).snapshot.files["mine"] == b"1"
    with pytest.raises(NotReadable):
        read_source(place, "trunk")


def test_a_submodule_is_read_at_a_commit_of_its_own(committed: Path, tmp_path: Path) -> None:
    place = tmp_path / "outer"
    subprocess.run(["git", "init", "-q", str(place)], check=True)
    command = ["git", "-C", str(place), "-c", "protocol.file.allow=always", "submodule", "--quiet", "add"]
    subprocess.run([*command, str(committed), "inner"], check=True)
    assert read_source(place / "inner", "trunk").snapshot.files["a"] == b"committed"


def test_a_folder_that_has_what_a_repository_has_is_read_as_a_folder(committed: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    run_git(place, "clone", "-q", "--bare", str(committed), str(place))
    write(place, {"skills/x/SKILL.md": "1"})
    source = read_source(place)
    assert source.snapshot.files["skills/x/SKILL.md"] == b"1"
    assert (source.commit, "read as a folder" in source.note) == ("", True)
    with pytest.raises(NotReadable, match="among other things"):
        read_source(place, "trunk")


@pytest.mark.parametrize(
    ("head", "note"), [("ref: refs/heads/nowhere\n", ""), ("ref: a\0b", "submodules are")]
)
def test_a_folder_is_read_whatever_its_repository_is(committed: Path, head: str, note: str) -> None:
    (committed / ".git" / "HEAD").write_text(head)
    source = read_source(committed)
    assert source.snapshot.files["a"] == b"changed"
    assert source.note[:14] == note
