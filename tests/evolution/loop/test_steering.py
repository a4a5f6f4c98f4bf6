import numpy as np

from evolution.loop.steering import steer


def steered(
    owners: list[int], before: list[int], pinned: str, degrees: list[float], texts: str = ""
) -> list[int]:
    """Rows on a circle; `pinned` has a p for each pinned row."""
    angles = np.radians(degrees)
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    flags = np.array([letter == "p" for letter in pinned])
    names = list(texts) or [str(row) for row in range(len(owners))]
    return [int(owner) for owner in steer(np.array(owners), np.array(before), flags, names, vectors)]


def test_pinned_failures_stay_where_people_put_them() -> None:
    assert steered([1, 1, 0], [2, 0, 2], "p.p", [0, 90, 180]) == [2, 1, 2]
    assert steered([1, 1], [0, 1], "p.", [0, 5]) == [0, 1]


def test_a_group_that_holds_pinned_failures_of_two_clusters_is_divided_between_them() -> None:
    owners, before = [1] * 6, [1, 2, 0, 0, 0, 0]
    assert steered(owners, before, "pp....", [0, 90, 10, 20, 70, 80]) == [1, 2, 1, 1, 2, 2]


def test_known_members_of_the_owner_hold_against_what_was_split_off() -> None:
    owners, before = [1] * 5, [1, 2, 1, 0, 0]
    assert steered(owners, before, ".p...", [0, 90, 40, 45, 85]) == [1, 2, 1, 1, 2]


def test_one_pinned_failure_does_not_take_a_new_group_with_it() -> None:
    assert steered([-1] * 3, [2, 0, 0], "p..", [0, 1, 2]) == [2, -1, -1]


def test_what_says_the_same_as_a_pinned_failure_is_where_that_is() -> None:
    assert steered([1, 1, 0], [2, 1, 0], "p..", [0, 0, 0], texts="aaa") == [2, 2, 2]


def test_what_people_left_stays_where_they_left_it_though_the_larger_part_was_split_off() -> None:
    assert steered([2] * 5, [2, 2, 2, 1, 1], "ppp..", [0, 0, 0, 0, 0]) == [2, 2, 2, 1, 1]
    assert steered([2] * 6, [2, 2, 1, 1, 0, 0], "pp....", [0, 2, 60, 62, 1, 61]) == [2, 2, 1, 1, 2, 1]


def test_a_group_without_pinned_failures_is_as_it_was_found() -> None:
    assert steered([2] * 3, [2, 1, 0], "...", [0, 90, 45]) == [2, 2, 2]
