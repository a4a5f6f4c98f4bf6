import os
from pathlib import Path

import pytest

from harness_repo.git.worktree import remove_folder, write_worktree
from harness_repo.snapshot import Snapshot


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "tree"
    inner.mkdir()
    return inner


def test_files_are_byte_exact_and_executables_can_be_run(folder: Path) -> None:
    files = {"run.sh": b"#!/bin/sh\n", "skills/a/SKILL.md": b"\xef\xbb\xbfx\r\n\0"}
    write_worktree(Snapshot(files, executables=frozenset({"run.sh"})), folder)
    assert {path: (folder / path).read_bytes() for path in files} == files
    assert [bool((folder / path).stat().st_mode & 0o111) for path in files] == [True, False]


@pytest.mark.parametrize(
    "path", ["../x", "a/../../x", "/x", "a//x", ".git/hooks/x", "sub/.GIT/config", "a\0b"]
)
def test_what_would_land_elsewhere_is_left_out(folder: Path, path: str) -> None:
    write_worktree(Snapshot({path: b"x"}, {path: "README"}, {path: "0" * 40}), folder)
    assert list(folder.parent.rglob("*")) == [folder]


@pytest.mark.parametrize(
    ("links", "left"),
    [
        ({"in": "README"}, {"in"}),
        ({"dangling": "nothing/here"}, {"dangling"}),
        ({"deep/up": "../README"}, {"deep/up"}),
        ({"out": "../x"}, set()),
        ({"root": "/etc/passwd"}, set()),
        # The second one looks as if it stayed inside.
        ({"a/b/top": "../..", "sly": "a/b/top/../x"}, {"a/b/top"}),
        ({"first": "second", "second": "/usr"}, set()),
        ({"round": "about", "about": "round"}, set()),
        ({"empty": ""}, set()),
    ],
)
def test_links_that_lead_out_are_left_out(folder: Path, links: dict[str, str], left: set[str]) -> None:
    write_worktree(Snapshot({"README": b"x"}, links), folder)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_symlink()}
    # Later versions of Python follow a circle to its end instead of refusing it: either is safe.
    assert found - {"round", "about"} == left


def test_submodules_are_empty_folders(folder: Path) -> None:
    write_worktree(Snapshot({}, {}, {"vendor/lib": "0" * 40}), folder)
    assert list((folder / "vendor/lib").iterdir()) == []


def test_read_only_folders_are_removed_too_and_links_not_followed(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir(mode=0o755)
    inner = tmp_path / "tree/cache/module"
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    (inner / "link").symlink_to(tmp_path / "outside")
    inner.chmod(0o500)
    inner.parent.chmod(0o000)
    remove_folder(tmp_path / "tree")
    assert [path.name for path in tmp_path.iterdir()] == ["outside"]
    assert (tmp_path / "outside").stat().st_mode & 0o777 == 0o755


def test_folder_is_removed_however_deep_it_is(tmp_path: Path) -> None:
    """Deeper than Python recurses and than a path may be long."""
    top = tmp_path / "tree"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("folder", dir_fd=here)
        inner = os.open("folder", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.close(here)
    remove_folder(top)
    assert list(tmp_path.iterdir()) == []


def test_removing_what_is_not_there_is_no_error(tmp_path: Path) -> None:
    remove_folder(tmp_path / "nothing")


@pytest.mark.parametrize(
    "snapshot",
    [
        Snapshot({}, {"a": "OUT", "a/evil": "whatever"}),
        Snapshot({}, {"a": "OUT", "a/b/evil": "x"}),
        Snapshot({"a/evil": b"x"}, {"a": "OUT"}),
        Snapshot({}, {"a": "OUT"}, {"a/evil": "0" * 40}),
        Snapshot({"a": b"x"}, {"a": "OUT", "a/evil": "x"}, {"a/evil": "0" * 40}),
        Snapshot({"a": b"x", "a/evil": b"x"}),
    ],
)
def test_nothing_is_made_below_a_link_or_twice(folder: Path, snapshot: Snapshot) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    links = {path: str(outside) if target == "OUT" else target for path, target in snapshot.links.items()}
    write_worktree(Snapshot(snapshot.files, links, snapshot.submodules), folder)
    assert list(outside.iterdir()) == []
    assert not (folder / "a").is_symlink()
