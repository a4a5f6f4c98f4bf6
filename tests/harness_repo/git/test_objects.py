"""What is written in process is what git would have written."""

import os
import zlib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness_repo.git.errors import BadPath, HarnessRepoError, MissingRef
from harness_repo.git.objects import Author
from harness_repo.git.repository import Edits, HarnessRepository
from tests.harness_repo.build import run_git

# Few names, so that edits meet: files where folders were and the other way round.
NAMES = st.sampled_from(["a", "b", "a.b", "a0", "中", "A-"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
EDITS = st.dictionaries(PATHS, st.none() | st.binary(max_size=4), max_size=5)


def write_with_git(repo: HarnessRepository, base: str, edits: Edits, index: Path) -> str:
    """The tree after the edits by git's own index: deletions first, as edits have no order."""
    env = {"GIT_INDEX_FILE": str(index)}
    index.unlink(missing_ok=True)
    run_git(repo.path, "read-tree", base, env=env)
    for path, data in sorted(edits.items(), key=lambda edit: edit[1] is not None):
        if data is None:
            run_git(repo.path, "update-index", "--force-remove", "--", path, env=env)
            continue
        blob = index.with_name("blob")
        blob.write_bytes(data)
        sha = run_git(repo.path, "hash-object", "-w", "--no-filters", str(blob)).decode().strip()
        arguments = ("update-index", "--add", "--replace", "--cacheinfo", f"100644,{sha},{path}")
        run_git(repo.path, *arguments, env=env)
    return run_git(repo.path, "write-tree", env=env).decode().strip()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EDITS, EDITS)
def test_a_tree_is_the_one_that_git_writes(
    repo: HarnessRepository, author: Author, tmp_path: Path, first: Edits, second: Edits
) -> None:
    base = repo.resolve("main")
    for edits in (first, {**second, "always": os.urandom(8)}):
        try:
            sha = repo.commit("b", edits, parent=base, author=author, message="m", expected_head=base)
        except BadPath:
            # One path as a file and as a folder: git would take the last.
            return
        except HarnessRepoError:
            continue
        finally:
            if "b" in repo.branches():
                repo.delete_branch("b")
        tree = write_with_git(repo, base, edits, tmp_path / "index")
        assert run_git(repo.path, "rev-parse", f"{sha}^{{tree}}").decode().strip() == tree
        base = sha


def test_edits_that_need_a_path_as_file_and_folder_are_refused(
    repo: HarnessRepository, author: Author
) -> None:
    with pytest.raises(BadPath, match="both"):
        repo.commit("b", {"x": b"1", "x/y": b"2"}, parent="main", author=author, message="m")
    sha = repo.commit("b", {"x": None, "x/y": b"2"}, parent="main", author=author, message="m")
    assert repo.read_file(sha, "x/y") == b"2"


def test_modes_links_and_submodules_outlive_edits_beside_them(
    repo: HarnessRepository, author: Author, tmp_path: Path
) -> None:
    env = {"GIT_INDEX_FILE": str(tmp_path / "index")}
    blob = run_git(repo.path, "rev-parse", "main:harness.yaml").decode().strip()
    commit = repo.resolve("main")
    for line in (f"120000,{blob},d/link", f"160000,{commit},d/module", f"100755,{blob},d/run.sh"):
        run_git(repo.path, "update-index", "--add", "--cacheinfo", line, env=env)
    tree = run_git(repo.path, "write-tree", env=env).decode().strip()
    odd = run_git(repo.path, "commit-tree", "-m", "odd", tree).decode().strip()
    sha = repo.commit("b", {"d/run.sh": b"new", "d/x": b"1"}, parent=odd, author=author, message="m")
    listed = run_git(repo.path, "ls-tree", "-r", "--format=%(objectmode) %(path)", sha).decode().splitlines()
    assert listed == ["120000 d/link", "160000 d/module", "100755 d/run.sh", "100644 d/x"]
    snapshot = repo.snapshot(sha)
    assert snapshot.submodules == {"d/module": commit}
    assert list(snapshot.links) == ["d/link"]
    assert snapshot.files == {"d/run.sh": b"new", "d/x": b"1"}


def test_packed_objects_and_refs_are_read_and_built_on(repo: HarnessRepository, author: Author) -> None:
    repo.commit("b", {"a/b": b"1"}, parent="main", author=author, message="m")
    repo.tag("t", "b", "m", author)
    before = repo.snapshot("t")
    run_git(repo.path, "gc", "--quiet", "--prune=now")
    assert not list(repo.path.glob("objects/??/*"))
    assert repo.snapshot("t") == before == repo.snapshot(repo.resolve("b")[:8])
    sha = repo.commit("b", {"a/c": b"2"}, parent="b", author=author, message="m")
    assert set(repo.files(sha)) == {*before.files, "a/c"}
    assert run_git(repo.path, "fsck", "--strict") == b""
    with pytest.raises(MissingRef):
        repo.read_file("b", "a")


@pytest.mark.parametrize("data", [b"", b"not zlib", zlib.compress(b"blob 9\0x"), zlib.compress(b"nonsense")])
def test_a_damaged_object_is_an_error_that_names_it(repo: HarnessRepository, data: bytes) -> None:
    sha = run_git(repo.path, "rev-parse", "main:harness.yaml").decode().strip()
    path = repo.path / "objects" / sha[:2] / sha[2:]
    path.chmod(0o644)
    path.write_bytes(data)
    with pytest.raises(HarnessRepoError, match=sha):
        repo.files("main")


def test_an_empty_object_that_a_crash_left_is_written_again(repo: HarnessRepository, author: Author) -> None:
    sha = repo.commit("b", {"a": b"content"}, parent="main", author=author, message="m")
    blob = run_git(repo.path, "rev-parse", f"{sha}:a").decode().strip()
    path = repo.path / "objects" / blob[:2] / blob[2:]
    path.chmod(0o644)
    path.write_bytes(b"")
    repo.commit("c", {"a": b"content"}, parent="main", author=author, message="m")
    assert repo.read_file("b", "a") == b"content"
