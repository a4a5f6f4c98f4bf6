from harness_repo.git.diffs import DiffLine
from tests.workbench.diff_view.diffs import make_diff
from workbench.diff_view.lines import find_moves, pair_lines, split_runs


def test_lines_are_paired_with_what_they_became() -> None:
    removed = ["call get_order first", "say the price", "never promise a refund"]
    added = ["a new line about nothing", "never promise any refund", "and be kind"]

    assert (2, 1) in pair_lines(removed, added)


def test_every_line_is_paired_once_and_in_order() -> None:
    pairs = pair_lines(["a b c", "d e f", "g h i"], ["d e f g", "x", "a b c", "g h i j"])

    removed = [at for at, _ in pairs if at is not None]
    added = [beside for _, beside in pairs if beside is not None]
    assert (removed, added) == ([0, 1, 2], [0, 1, 2, 3])


def test_many_lines_are_paired_in_order() -> None:
    lines = [f"line {at}" for at in range(100)]

    assert pair_lines(lines, lines[:50])[:2] == [(0, 0), (1, 1)]
    assert pair_lines(lines, lines[:50])[-1] == (99, None)


def test_runs_are_parted_where_removed_lines_follow_added_ones() -> None:
    lines = [DiffLine(kind, 1, 1, kind) for kind in " -+-+ "]  # type: ignore[arg-type]  # the kinds of a diff

    runs = [[len(part) for part in run] for run in split_runs(lines)]

    assert runs == [[1, 0, 0], [0, 1, 1], [0, 1, 1], [1, 0, 0]]


def test_a_line_that_moved_to_another_file_is_found_from_both_ends() -> None:
    rule = "Never promise a refund.\n"
    files, _ = make_diff({"a.md": (f"a\n{rule}", "a\n"), "b.md": ("b\n", f"b\nc\n  {rule}")})

    assert find_moves(files) == {("a.md", "old", 2): ("b.md", 3), ("b.md", "new", 3): ("a.md", 2)}


def test_a_line_that_came_twice_did_not_move() -> None:
    rule = "Never promise a refund.\n"
    files, _ = make_diff({"a.md": (f"a\n{rule}", "a\n"), "b.md": ("b\n", f"{rule}b\n{rule}")})

    assert find_moves(files) == {}
