import subprocess
from pathlib import Path

import pytest

from evolution.loop.diff_digests import diff_digest
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository

BY = Author("t", "t@example.org")
TEXT = "".join(f"line {n}\n" for n in range(1, 41)).encode()


def edited(number: int, words: bytes) -> bytes:
    return TEXT.replace(b"line %d\n" % number, words + b"\n")


@pytest.fixture
def repository(tmp_path: Path) -> HarnessRepository:
    return HarnessRepository.create(tmp_path / "r.git", {"a.md": TEXT}, author=BY, message="first")


def commit(repository: HarnessRepository, branch: str, parent: str, **files: bytes) -> str:
    edits = {name.replace("_", "."): data for name, data in files.items()}
    return repository.commit(branch, edits, parent=parent, author=BY, message="m")


def patch_id(repository: HarnessRepository, base: str, head: str) -> str:
    """What git itself takes for the same change."""
    told = repository.diff(base, head).encode()
    asked = ["git", "patch-id", "--verbatim"]
    return subprocess.run(asked, input=told, capture_output=True, check=True).stdout.split()[0].decode()


def test_the_same_change_on_another_base_has_the_same_digest(repository: HarnessRepository) -> None:
    base = repository.resolve("main")
    one = commit(repository, "one", base, a_md=edited(30, b"new words"))
    moved = commit(repository, "moved", base, a_md=b"on top\n" + TEXT, b_md=b"other\n")
    two = commit(repository, "two", moved, a_md=b"on top\n" + edited(30, b"new words"))

    assert diff_digest(repository, base, one) == diff_digest(repository, moved, two)
    assert patch_id(repository, base, one) == patch_id(repository, moved, two)


@pytest.mark.parametrize(
    "data",
    [edited(30, b"new  words"), edited(31, b"new words"), edited(30, b"new words").rstrip(b"\n")],
    ids=["white space", "another line", "no newline at the end"],
)
def test_another_change_has_another_digest(repository: HarnessRepository, data: bytes) -> None:
    base = repository.resolve("main")
    one = commit(repository, "one", base, a_md=edited(30, b"new words"))
    two = commit(repository, "two", base, a_md=data)

    assert diff_digest(repository, base, one) != diff_digest(repository, base, two)


def test_lines_around_the_change_count(repository: HarnessRepository) -> None:
    base = repository.resolve("main")
    one = commit(repository, "one", base, a_md=edited(30, b"new words"))
    other = commit(repository, "other", base, a_md=edited(29, b"never do this:"))
    data = edited(30, b"new words").replace(b"line 29\n", b"never do this:\n")
    two = commit(repository, "two", other, a_md=data)

    assert diff_digest(repository, base, one) != diff_digest(repository, other, two)


@pytest.mark.parametrize("pair", [(b"\xff\n", b"\xfe\n"), (b"\0a", b"\0b")], ids=["not UTF-8", "binary"])
def test_bytes_that_are_no_text_are_told_apart(
    repository: HarnessRepository, pair: tuple[bytes, bytes]
) -> None:
    base = repository.resolve("main")
    heads = [commit(repository, f"b{n}", base, c_md=data) for n, data in enumerate(pair)]

    one, two = (diff_digest(repository, base, head) for head in heads)
    assert one != two


LIST = b"".join(
    b"- %s\n" % word for word in b"look up,ask,say it,confirm,write it down,thank,close".split(b",")
)
CONFIRM = b"- confirm\n"
TWICE = b"# Small talk\n\n" + LIST + b"\n# Refunds\n\n" + LIST
ROW = b"  - a: 1\n    b: 2\n    turns: 3\n    c: 4\n    d: 5\n"
SETTINGS = b"small:\n" + ROW + b"large:\n" + ROW


def without(text: bytes, lines: bytes, place: int) -> bytes:
    parts = text.split(lines)
    return lines.join(parts[: place + 1]) + lines.join(parts[place + 1 :])


def digest_of(repository: HarnessRepository, path: str, before: bytes, after: bytes) -> str:
    name = f"b{len(repository.branches())}"
    base = repository.commit(
        name, {path: before}, parent="main", author=BY, message="base", expected_head=None
    )
    head = repository.commit(f"{name}x", {path: after}, parent=base, author=BY, message="head")
    return diff_digest(repository, base, head)


@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [("a.md", TWICE, CONFIRM), ("a.yaml", SETTINGS, b"    turns: 3\n"), ("a.txt", LIST * 2, CONFIRM)],
)
def test_the_same_lines_at_another_place_are_another_change(
    repository: HarnessRepository, path: str, text: bytes, lines: bytes
) -> None:
    one, two = (digest_of(repository, path, text, without(text, lines, place)) for place in (0, 1))
    assert one != two


def test_a_section_that_moved_to_another_heading_is_another_place(repository: HarnessRepository) -> None:
    far = b"".join(b"%s %d\n" % (b"far", n) for n in range(9))
    texts = [b"# %s\n" % name + far + LIST for name in (b"Small talk", b"Refunds")]
    one, two = (digest_of(repository, "a.md", text, text.replace(CONFIRM, b"")) for text in texts)
    assert one != two


def test_a_base_that_changed_elsewhere_leaves_an_ambiguous_place_as_it_is(
    repository: HarnessRepository,
) -> None:
    far = b"".join(b"far %d\n" % n for n in range(20))
    text = far + TWICE + far
    moved = b"on top\n" + text.replace(b"far 3\n", b"") + b"below\n"
    before, after = (
        [digest_of(repository, "a.md", base, without(base, CONFIRM, place)) for place in (0, 1)]
        for base in (text, moved)
    )
    assert before == after
    assert before[0] != before[1]


def test_what_became_ambiguous_counts_as_another_place(repository: HarnessRepository) -> None:
    once = b"# Refunds\n\n" + LIST + b"\n# End\n"
    one = digest_of(repository, "a.md", once, without(once, CONFIRM, 0))
    both = once + b"\n# Refunds\n\n" + LIST
    assert one not in {digest_of(repository, "a.md", both, without(both, CONFIRM, place)) for place in (0, 1)}
