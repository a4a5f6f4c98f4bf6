import pytest

from harness_repo.git.errors import BadRef, MergeConflict, NothingToCommit, StaleBase
from harness_repo.git.objects import Author
from harness_repo.git.repository import Edits, HarnessRepository


def commit(repo: HarnessRepository, author: Author, branch: str, edits: Edits, parent: str = "main") -> str:
    return repo.commit(branch, edits, parent=parent, author=author, message=branch)


def test_a_merge_that_is_built_moves_no_branch(repo: HarnessRepository, author: Author) -> None:
    head = commit(repo, author, "side", {"new.md": b"n\n"})
    before = repo.branches()
    merged = repo.build_merge("main", [head], author=author, message="m", resolutions={})
    assert repo.branches() == before
    assert repo.read_file(merged, "new.md") == b"n\n"
    repo.move_branch("step/1", merged, expected_head=None)
    assert repo.branches()["step/1"] == merged


def test_a_commit_that_is_built_moves_no_branch(repo: HarnessRepository, author: Author) -> None:
    before, main = repo.branches(), repo.resolve("main")
    live = commit(repo, author, "side", {"live.md": b"l\n"})
    repo.delete_branch("side")
    edits: Edits = {"new.md": b"n\n"}
    built = repo.build_commit(edits, parent=main, author=author, message="m", onto=live)
    assert repo.branches() == before
    assert repo.log(built, 1)[0].parents == (main, live)
    assert repo.changed_files("main", built) == ["live.md", "new.md"]
    with pytest.raises(NothingToCommit):
        repo.build_commit(edits, parent=built, author=author, message="m")


def test_a_branch_that_is_rebased_goes_on_from_its_head(repo: HarnessRepository, author: Author) -> None:
    head = commit(repo, author, "side", {"new.md": b"n\n"})
    live = commit(repo, author, "main", {"live.md": b"l\n"})
    rebased = repo.build_rebase(head, live, author=author, message="m", resolutions={})
    assert repo.log(rebased, 1)[0].parents == (head, live)
    assert repo.changed_files(live, rebased) == ["new.md"]
    with pytest.raises(NothingToCommit):
        repo.build_rebase(rebased, live, author=author, message="m", resolutions={})


def test_a_rebase_and_a_merge_settle_a_conflict_alike(repo: HarnessRepository, author: Author) -> None:
    start = commit(repo, author, "main", {"f.md": b"1\n"})
    head = commit(repo, author, "side", {"f.md": b"2\n"}, start)
    live = commit(repo, author, "main", {"f.md": b"3\n"}, start)
    with pytest.raises(MergeConflict) as caught:
        repo.build_rebase(head, live, author=author, message="m", resolutions={})
    (conflict,) = repo.check_merge(live, [head]).conflicts
    known = {conflict.key: b"2 and 3\n"}
    rebased = repo.build_rebase(head, live, author=author, message="m", resolutions=known)
    assert caught.value.conflicts[0].key == conflict.key
    assert repo.read_file(rebased, "f.md") == b"2 and 3\n"


def test_a_check_can_foresee_a_rebuild(repo: HarnessRepository, author: Author) -> None:
    start = commit(repo, author, "main", {"f.md": b"1\n2\n"})
    heads = [commit(repo, author, f"side/{n}", {"f.md": b"1\n%d\n" % n}, start) for n in (3, 4)]
    live = commit(repo, author, "main", {"f.md": b"1\n5\n"}, start)
    first = repo.check_merge(live, heads, rebasing=True)
    known = {first.conflicts[0].key: b"1\n5\n3\n"}
    second = repo.check_merge(live, heads, resolutions=known, rebasing=True)
    assert (first.head, first.is_alone) == (heads[0], True)
    # The other one clashes with what is live too, whatever came before it.
    assert (second.head, second.is_alone) == (heads[1], True)
    known[second.conflicts[0].key] = b"1\n5\n4\n"
    third = repo.check_merge(live, heads, resolutions=known, rebasing=True)
    rebased = [repo.build_rebase(head, live, author=author, message="m", resolutions=known) for head in heads]
    built = repo.check_merge(live, rebased)
    assert [file.key for file in third.conflicts] == [file.key for file in built.conflicts]
    assert (third.tree, third.is_alone) == (built.tree, False)


def test_a_branch_moves_only_from_where_it_is_expected(repo: HarnessRepository, author: Author) -> None:
    head = commit(repo, author, "side", {"new.md": b"n\n"})
    for expected in (None, "main"):
        with pytest.raises(StaleBase):
            repo.move_branch("side", "main", expected_head=expected)
    with pytest.raises(BadRef):
        repo.move_branch("main", head, expected_head="main")
    assert repo.branches()["side"] == head
