import errno
import os
import shutil
from pathlib import Path

import pytest

from harness_repo.git.errors import (
    BadPath,
    BadRef,
    HarnessRepoError,
    MergeConflict,
    MissingRef,
    NothingToCommit,
    RefExists,
    RepoBusy,
    RepoExists,
    StaleBase,
)
from harness_repo.git.objects import Author
from harness_repo.git.repository import Edits, HarnessRepository
from tests.harness_repo.build import FILES, run_git


def change(repo: HarnessRepository, author: Author, branch: str, edits: Edits, parent: str = "main") -> str:
    return repo.commit(branch, edits, parent=parent, author=author, message=f"Edit on {branch}")


def test_create_makes_a_bare_repository_that_git_finds_sound(repo: HarnessRepository) -> None:
    assert run_git(repo.path, "rev-parse", "--is-bare-repository") == b"true\n"
    assert run_git(repo.path, "fsck", "--strict") == b""
    assert run_git(repo.path, "symbolic-ref", "HEAD") == b"refs/heads/main\n"


def test_create_refuses_a_path_that_is_taken(repo: HarnessRepository, author: Author) -> None:
    before = repo.resolve("main")
    with pytest.raises(RepoExists):
        HarnessRepository.create(repo.path, {"a": b"b"}, author=author, message="again")
    assert repo.resolve("main") == before


def test_create_leaves_nothing_behind_when_it_fails(tmp_path: Path, author: Author) -> None:
    with pytest.raises(BadPath):
        HarnessRepository.create(tmp_path / "x.git", {"../a": b""}, author=author, message="m")
    assert list(tmp_path.iterdir()) == []


def test_files_gives_back_every_byte(repo: HarnessRepository) -> None:
    assert repo.files("main") == FILES


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"x\n\n\n", b"a\r\nb\r\n", b"\xff\x00\xfe", b"\xef\xbb\xbfx", "好".encode()]
)
def test_a_write_is_byte_exact(repo: HarnessRepository, author: Author, data: bytes) -> None:
    sha = change(repo, author, "proposal/1-x", {"skills/中文/a b.md": data})
    assert run_git(repo.path, "cat-file", "blob", f"{sha}:skills/中文/a b.md") == data
    assert repo.read_file(sha, "skills/中文/a b.md") == data


def test_line_end_attributes_do_not_change_what_is_written(repo: HarnessRepository, author: Author) -> None:
    edits = {".gitattributes": b"* text=auto eol=lf\n", "a.md": b"x\r\n"}
    assert repo.read_file(change(repo, author, "b", edits), "a.md") == b"x\r\n"


def test_commit_deletes_and_keeps_the_mode_of_a_file(repo: HarnessRepository, author: Author) -> None:
    sha = change(repo, author, "b", {"hooks/short.yaml": None, "harness.yaml": b"format: 1\n"})
    names = run_git(repo.path, "ls-tree", "-r", "--name-only", sha).decode().split()
    assert "hooks/short.yaml" not in names
    assert run_git(repo.path, "ls-tree", sha, "harness.yaml").startswith(b"100644 blob")


def test_commit_is_by_its_author_and_committed_by_the_workbench(
    repo: HarnessRepository, author: Author
) -> None:
    sha = change(repo, author, "b", {"a": b"1"})
    line = run_git(repo.path, "log", "-1", "--format=%an|%ae|%cn|%s", sha).decode().strip()
    assert line == "张三|zhang@example.org|Harness Workbench|Edit on b"


def test_an_author_cannot_break_the_commit_header(repo: HarnessRepository) -> None:
    sha = change(repo, Author("Eve <x>\ncommitter y", ""), "b", {"a": b"1"})
    assert run_git(repo.path, "log", "-1", "--format=%an", sha) == b"Eve xcommitter y\n"
    assert run_git(repo.path, "fsck", "--strict") == b""


def test_the_second_commit_on_a_branch_needs_its_head(repo: HarnessRepository, author: Author) -> None:
    first = change(repo, author, "b", {"a": b"1"})
    with pytest.raises(StaleBase):
        change(repo, author, "b", {"a": b"2"})
    second = change(repo, author, "b", {"a": b"2"}, parent=first)
    assert repo.branches()["b"] == second


def test_commit_with_expected_head_moves_a_branch_to_another_parent(
    repo: HarnessRepository, author: Author
) -> None:
    old = change(repo, author, "b", {"a": b"1"})
    new = repo.commit("b", {"c": b"2"}, parent="main", author=author, message="anew", expected_head=old)
    assert [repo.resolve("b"), repo.log("b")[0].parents] == [new, (repo.resolve("main"),)]
    with pytest.raises(StaleBase):
        repo.commit("b", {"d": b"3"}, parent="main", author=author, message="late", expected_head=old)


def test_commit_onto_another_version_has_its_files_and_both_parents(
    repo: HarnessRepository, author: Author
) -> None:
    old = change(repo, author, "b", {"a": b"1"})
    live = change(repo, author, "main", {"c": b"2"})
    new = repo.commit("b", {"d": b"3"}, parent=old, onto=live, author=author, message="anew")
    assert repo.log("b")[0].parents == (old, live)
    assert repo.files(new) == {**FILES, "c": b"2", "d": b"3"}
    assert run_git(repo.path, "fsck", "--strict") == b""


def test_commit_without_a_change_is_refused(repo: HarnessRepository, author: Author) -> None:
    with pytest.raises(NothingToCommit):
        change(repo, author, "b", {"harness.yaml": FILES["harness.yaml"], "not/there": None})
    assert list(repo.branches()) == ["main"]


def test_merge_brings_both_heads_together(repo: HarnessRepository, author: Author) -> None:
    heads = [change(repo, author, "p/1", {"a": b"1"}), change(repo, author, "p/2", {"b": b"2"})]
    sha = repo.merge("step/1", "main", heads, author=author, message="Step 1")
    assert repo.changed_files("main", sha) == ["a", "b"]
    assert all(repo.is_ancestor(head, sha) for head in heads)


def test_merge_of_different_lines_of_one_file_is_git_s_own(repo: HarnessRepository, author: Author) -> None:
    base = change(repo, author, "base", {"f": b"1\n2\n3\n4\n5\n6\n7\n"})
    one = change(repo, author, "p/1", {"f": b"one\n2\n3\n4\n5\n6\n7\n"}, parent=base)
    two = change(repo, author, "p/2", {"f": b"1\n2\n3\n4\n5\n6\nseven\n"}, parent=base)
    sha = repo.merge("step/1", base, [one, two], author=author, message="m")
    assert run_git(repo.path, "show", f"{sha}:f") == b"one\n2\n3\n4\n5\n6\nseven\n"


def test_a_merge_conflict_names_its_files_and_moves_nothing(repo: HarnessRepository, author: Author) -> None:
    one = change(repo, author, "p/1", {"冲突.md": b"1", "x": b"1"})
    two = change(repo, author, "p/2", {"冲突.md": b"2", "y": b"1"})
    with pytest.raises(MergeConflict) as caught:
        repo.merge("step/1", "main", [one, two], author=author, message="m")
    assert caught.value.files == ("冲突.md",)
    assert "step/1" not in repo.branches()


def test_merge_of_what_is_contained_is_refused(repo: HarnessRepository, author: Author) -> None:
    with pytest.raises(NothingToCommit):
        repo.merge("step/1", "main", ["main"], author=author, message="m")


def test_advance_main_moves_to_a_descendant_only(repo: HarnessRepository, author: Author) -> None:
    base, one = repo.resolve("main"), change(repo, author, "p/1", {"a": b"1"})
    two = change(repo, author, "p/2", {"b": b"1"})
    repo.advance_main(one, expected=base)
    with pytest.raises(StaleBase):
        repo.advance_main(two, expected=base)
    with pytest.raises(StaleBase):
        repo.advance_main(two, expected=one)
    assert run_git(repo.path, "rev-parse", "main").decode().strip() == one


def test_restore_puts_old_files_on_top_and_keeps_history(repo: HarnessRepository, author: Author) -> None:
    base, new = repo.resolve("main"), change(repo, author, "p/1", {"a": b"1"})
    repo.advance_main(new, expected=base)
    sha = repo.restore(base, expected=new, author=author, message="Roll back")
    assert repo.files("main") == FILES
    assert [commit.sha for commit in repo.log("main")] == [sha, new, base]
    with pytest.raises(StaleBase):
        repo.restore(new, expected=new, author=author, message="late")


def test_tag_is_annotated_and_never_moves(repo: HarnessRepository, author: Author) -> None:
    repo.tag("release/1", "main", "First\n\n# not a comment", author)
    assert run_git(repo.path, "cat-file", "-t", "release/1") == b"tag\n"
    assert b"# not a comment" in run_git(repo.path, "cat-file", "tag", "release/1")
    assert repo.list_tags() == {"release/1": repo.resolve("main")}
    with pytest.raises(RefExists):
        repo.tag("release/1", "main", "again", author)


def test_the_log_between_two_versions_follows_every_parent(repo: HarnessRepository, author: Author) -> None:
    base = repo.resolve("main")
    side = repo.commit("side", {"side.md": b"x\n"}, parent=base, author=author, message="side")
    ours = repo.commit("ours", {"ours.md": b"x\n"}, parent=base, author=author, message="ours")
    head = repo.merge("ours", ours, [side], author=author, message="merge")
    assert {info.sha for info in repo.log_between(base, head)} == {side, ours, head}
    assert repo.log_between(head, base) == []


def test_log_keeps_whole_messages_and_the_limit(repo: HarnessRepository, author: Author) -> None:
    message = "主题\n\n正文\n\nProposal: 7"
    repo.commit("b", {"a": b"1"}, parent="main", author=author, message=message)
    newest = repo.log("b", 1)
    assert [(commit.message, commit.author) for commit in newest] == [(message, "张三")]
    assert len(repo.log("b", 10)) == 2


def test_diff_is_what_git_prints(repo: HarnessRepository, author: Author) -> None:
    sha = change(repo, author, "b", {"prompts/角色.md": "好\n".encode(), "hooks/short.yaml": None})
    plain = run_git(repo.path, "-c", "core.quotePath=false", "diff", "main", sha).decode()
    assert repo.diff("main", sha) == plain
    assert "prompts/角色.md" in plain


def test_resolve_finds_branches_tags_and_short_ids(repo: HarnessRepository, author: Author) -> None:
    sha = repo.resolve("main")
    repo.tag("v1", sha, "m", author)
    assert {repo.resolve(name) for name in ("v1", "HEAD", sha, sha[:8], "refs/heads/main")} == {sha}
    with pytest.raises(MissingRef):
        repo.resolve("f" * 40)


def test_delete_branch_spares_main(repo: HarnessRepository, author: Author) -> None:
    change(repo, author, "b", {"a": b"1"})
    repo.delete_branch("b")
    with pytest.raises(BadRef):
        repo.delete_branch("main")
    with pytest.raises(MissingRef):
        repo.delete_branch("b")
    assert list(repo.branches()) == ["main"]


@pytest.mark.usefixtures("impatient_git")
def test_a_locked_branch_is_busy_and_stays_where_it_is(repo: HarnessRepository, author: Author) -> None:
    (repo.path / "refs/heads/b.lock").touch()
    with pytest.raises(RepoBusy):
        change(repo, author, "b", {"a": b"1"})
    assert "b" not in repo.branches()


def test_symbolic_links_and_submodules_are_not_files(repo: HarnessRepository) -> None:
    blob = run_git(repo.path, "rev-parse", "main:harness.yaml").decode().strip()
    env = {**os.environ, "GIT_INDEX_FILE": str(repo.path / "test-index")}
    commit = repo.resolve("main")
    lines = f"120000,{blob},link", f"160000,{commit},module", f"100755,{blob},run.sh"
    for line in lines:
        run_git(repo.path, "update-index", "--add", "--cacheinfo", line, env=env)
    tree = run_git(repo.path, "write-tree", env=env).decode().strip()
    sha = run_git(repo.path, "commit-tree", "-m", "odd", tree, env=env).decode().strip()
    assert list(repo.files(sha)) == ["run.sh"]


def test_the_environment_of_a_surrounding_git_does_not_matter(
    repo: HarnessRepository, author: Author, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hook = repo.path / "hooks/reference-transaction"
    hook.parent.mkdir()
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    sha = change(repo, author, "b", {"a": b"1"})
    assert repo.files(sha)["a"] == b"1"


def test_a_repository_that_is_gone_is_not_a_missing_branch(repo: HarnessRepository, author: Author) -> None:
    shutil.rmtree(repo.path)
    for deed in (
        lambda: repo.resolve("main"),
        lambda: repo.snapshot("main"),
        lambda: change(repo, author, "b", {"a": b"1"}),
        repo.branches,
    ):
        with pytest.raises(HarnessRepoError) as caught:
            deed()
        assert not isinstance(caught.value, MissingRef)


def test_a_disk_that_takes_nothing_is_a_typed_error(
    repo: HarnessRepository, author: Author, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = sorted(repo.path.rglob("*"))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(HarnessRepoError, match="No space"):
            change(repo, author, "b", {"a": b"1"})
    left = [path for path in repo.path.rglob("*") if path not in before and path.is_file()]
    assert [path for path in left if "tmp_obj" in path.name] == []
    assert list(repo.branches()) == ["main"]
    change(repo, author, "b", {"a": b"1"})
