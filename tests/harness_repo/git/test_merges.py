import pytest

from harness_repo.git.conflicts import ConflictHunk
from harness_repo.git.errors import MergeConflict
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.harness_repo.build import run_git

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


FRONT = b"---\nname: s\ndescription: d\n---\n"


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (FRONT.replace(b"d\n-", b"d\nlicense: MIT\n-"), FRONT.replace(b"d\n-", b"d\nlicense: GPL\n-")),
        (b"---\nx: 1\n---\n" + FRONT, b"---\nx: 2\n---\n" + FRONT),
    ],
)
def test_front_matter_is_never_united(
    repo: HarnessRepository, author: Author, ours: bytes, theirs: bytes
) -> None:
    start = repo.commit("base", {"s.md": FRONT}, parent="main", author=author, message="m")
    with pytest.raises(MergeConflict):
        merge(repo, author, start, "s.md", ours, theirs)


@pytest.mark.parametrize(
    "texts",
    [
        (b"- a", b"- a\n- b", b"- a\n- c", b"- a\n- b\n- c"),
        (b"- a\r\n", b"- a\r\n- b\r\n", b"- a\r\n- c\r\n", b"- a\r\n- b\r\n- c\r\n"),
        (b"# a\n", b"# a\n## b\n\nB\n", b"# a\n## c\n\nC\n", b"# a\n## b\n\nB\n## c\n\nC\n"),
    ],
)
def test_what_both_sides_add_below_it_stays_whole(
    repo: HarnessRepository, author: Author, texts: tuple[bytes, ...]
) -> None:
    old, ours, theirs, united = texts
    start = repo.commit("base", {"s.md": FRONT + old}, parent="main", author=author, message="m")
    assert merge(repo, author, start, "s.md", FRONT + ours, FRONT + theirs) == FRONT + united
    assert repo.check_merge("side/0", ["side/1"]).is_clean
    assert run_git(repo.path, "fsck", "--strict", "--no-dangling") == b""


BODY = b"# Rules\n- one\n- two\n\n## Style\nShort.\n"


@pytest.mark.parametrize("front", [b"", FRONT])
def test_additions_at_one_place_stay_when_a_side_also_edits_another_line(
    repo: HarnessRepository, author: Author, front: bytes
) -> None:
    start = repo.commit("base", {"s.md": front + BODY}, parent="main", author=author, message="m")
    ours = BODY.replace(b"two\n", b"two\n- a\n").replace(b"Short", b"Very short")
    theirs = BODY.replace(b"two\n", b"two\n- b\n").replace(b"# Rules\n- one\n", b"# All rules\n- one\n")
    merged = merge(repo, author, start, "s.md", front + ours, front + theirs)
    assert merged == front + b"# All rules\n- one\n- two\n- a\n- b\n\n## Style\nVery short.\n"


def test_additions_stay_below_front_matter_that_git_merged(repo: HarnessRepository, author: Author) -> None:
    start = repo.commit("base", {"s.md": FRONT}, parent="main", author=author, message="m")
    ours = FRONT.replace(b"---\nn", b"---\na: 1\nn") + b"- a\n"
    theirs = FRONT.replace(b"d\n-", b"d\nb: 2\n-") + b"- b\n"
    merged = merge(repo, author, start, "s.md", ours, theirs)
    assert merged == b"---\na: 1\nname: s\ndescription: d\nb: 2\n---\n- a\n- b\n"


def test_only_what_people_have_to_decide_is_shown_beside_additions(
    repo: HarnessRepository, author: Author
) -> None:
    start = repo.commit("base", {"s.md": FRONT + BODY}, parent="main", author=author, message="m")
    sides = [
        FRONT + BODY.replace(b"two\n", b"two\n- %s\n" % name).replace(b"Short", name)
        for name in (b"ours", b"theirs")
    ]
    with pytest.raises(MergeConflict) as caught:
        merge(repo, author, start, "s.md", *sides)
    (conflict,) = caught.value.conflicts
    # Four lines of front matter, three of rules, both additions, an empty line and the heading stand above.
    assert conflict.hunks == (ConflictHunk(12, base="Short.\n", ours="ours.\n", theirs="theirs.\n"),)


@pytest.mark.parametrize("place", [b"- one\n", b"Short.\n"])
def test_an_addition_beside_a_line_that_a_side_took_away_is_for_people(
    repo: HarnessRepository, author: Author, place: bytes
) -> None:
    start = repo.commit("base", {"s.md": BODY}, parent="main", author=author, message="m")
    with pytest.raises(MergeConflict):
        merge(repo, author, start, "s.md", BODY.replace(place, place + b"- a\n"), BODY.replace(place, b""))
