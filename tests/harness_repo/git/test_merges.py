import pytest

from harness_repo.git.errors import MergeConflict
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository

RULES = "prompts/规则 [a]*.md"


@pytest.fixture
def base(repo: HarnessRepository, author: Author) -> str:
    rules = {RULES: b"# rules\n- one\n- two\n", "hooks/x.yaml": b"name: x\n"}
    return repo.commit("base", rules, parent="main", author=author, message="rules")


def merge(repo: HarnessRepository, author: Author, base: str, path: str, *versions: bytes) -> bytes:
    heads = [
        repo.commit(f"side/{number}", {path: version}, parent=base, author=author, message="side")
        for number, version in enumerate(versions)
    ]
    return repo.read_file(repo.merge("step/1", base, heads, author=author, message="step"), path)


def test_rules_that_three_sides_append_are_all_kept(
    repo: HarnessRepository, author: Author, base: str
) -> None:
    old = b"# rules\n- one\n- two\n"
    merged = merge(repo, author, base, RULES, old + b"- a\n", old + b"- b\n", old + b"- c\n")
    assert merged == old + b"- a\n- b\n- c\n"


def test_a_line_that_one_side_rewrote_stays_a_conflict(
    repo: HarnessRepository, author: Author, base: str
) -> None:
    with pytest.raises(MergeConflict) as caught:
        merge(repo, author, base, RULES, b"# rules\n- one\n- 2\n- a\n", b"# rules\n- one\n- two\n- b\n")
    assert caught.value.files == (RULES,)
    assert "step/1" not in repo.branches()


def test_what_is_not_markdown_stays_a_conflict(repo: HarnessRepository, author: Author, base: str) -> None:
    with pytest.raises(MergeConflict):
        merge(repo, author, base, "hooks/x.yaml", b"name: x\na: 1\n", b"name: x\nb: 2\n")


def test_a_file_that_both_sides_made_stays_a_conflict(
    repo: HarnessRepository, author: Author, base: str
) -> None:
    with pytest.raises(MergeConflict):
        merge(repo, author, base, "prompts/new.md", b"- a\n", b"- b\n")
