import pytest

from evolution.errors import LoopError
from evolution.loop.conflict_resolutions import Decision, HunkChoice, Side, decide_content, recall_places
from harness_repo.git.conflicts import FileConflict, FileSides
from harness_repo.git.markedfile import Clash


def make_conflict(*, end: bytes = b"\n", last: bool = False) -> FileConflict:
    clash = Clash(b"b" + end, b"o" + end, b"t" + end)
    parts = (b"1" + end, clash) if last else (b"1" + end, clash, b"2" + end)
    whole = [b"1" + end + side for side in clash]
    return FileConflict("f.md", "content", sides=FileSides(*whole), parts=parts)


def choose(side: Side, text: str = "") -> Decision:
    return Decision(hunks=(HunkChoice(side, text),))


@pytest.mark.parametrize(
    ("decision", "content"),
    [
        (choose(Side.OURS), b"1\no\n2\n"),
        (choose(Side.THEIRS), b"1\nt\n2\n"),
        (choose(Side.OURS_FIRST), b"1\no\nt\n2\n"),
        (choose(Side.THEIRS_FIRST), b"1\nt\no\n2\n"),
        (choose(Side.OWN, "x"), b"1\nx\n2\n"),
        (choose(Side.OWN, "x\r\ny\r\n"), b"1\nx\ny\n2\n"),
        (choose(Side.OWN), b"1\n2\n"),
        (Decision(text="all\r\n"), b"all\n"),
        (Decision(text=""), b""),
        (Decision(side=Side.THEIRS), b"1\nt\n"),
    ],
)
def test_a_decision_says_what_becomes_of_the_file(decision: Decision, content: bytes) -> None:
    assert decide_content(make_conflict(), decision) == content


def test_own_text_gets_the_line_ends_of_the_file() -> None:
    conflict = make_conflict(end=b"\r\n")
    assert decide_content(conflict, choose(Side.OWN, "x\ny")) == b"1\r\nx\r\ny\r\n2\r\n"


def test_two_last_lines_without_an_end_do_not_run_together() -> None:
    clash = Clash(b"b", b"o", b"t")
    conflict = FileConflict("f.md", "content", sides=FileSides(b"b", b"o", b"t"), parts=(clash,))
    assert decide_content(conflict, choose(Side.OURS_FIRST)) == b"o\nt"
    assert decide_content(conflict, choose(Side.OWN, "x")) == b"x"


def test_a_side_that_has_no_such_file_takes_it_away() -> None:
    conflict = FileConflict("f.md", "modify/delete", sides=FileSides(b"b", b"o", None))
    assert decide_content(conflict, Decision(side=Side.THEIRS)) is None
    assert decide_content(conflict, Decision(side=Side.OURS)) == b"o"


@pytest.mark.parametrize("hunks", [(), (HunkChoice(Side.OURS), HunkChoice(Side.OURS))])
def test_every_place_needs_one_choice(hunks: tuple[HunkChoice, ...]) -> None:
    with pytest.raises(LoopError, match="every place"):
        decide_content(make_conflict(), Decision(hunks=hunks))


@pytest.mark.parametrize(
    ("settled", "places"),
    [
        (b"0\n1\nwas\n2\n3\n", [b"was\n"]),
        (b"1\n2\n", [b""]),
        # not sure: one of the lines is gone, stands twice, or they stand the other way round
        (b"1\nwas\n", [None]),
        (b"1\nwas\n2\n1\n", [None]),
        (b"2\nwas\n1\n", [None]),
    ],
)
def test_a_place_is_found_again_by_the_lines_around_it(settled: bytes, places: list[bytes | None]) -> None:
    assert recall_places(make_conflict(), settled) == places


def test_a_place_at_the_end_is_found_by_what_is_before_it() -> None:
    assert recall_places(make_conflict(last=True), b"1\nwas\n") == [b"was\n"]
