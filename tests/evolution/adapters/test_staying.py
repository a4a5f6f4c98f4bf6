from collections.abc import Sequence

import numpy as np

from evolution.adapters.staying import is_clearly_better, keep_known


def circle(*degrees: float) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def kept(degrees: Sequence[float], labels: list[int], before: list[int], smallest: int = 3) -> list[int]:
    return [
        int(label) for label in keep_known(circle(*degrees), np.array(labels), np.array(before), smallest)
    ]


def test_known_rows_stay_whatever_group_they_are_found_in() -> None:
    assert kept([0, 1, 2, 90], [0, 0, -1, 0], [5, 5, 5, 7]) == [0, 0, 0, 1]


def test_new_rows_of_two_known_clusters_in_one_group_go_with_the_nearest_known_row() -> None:
    assert kept([0, 1, 50, 51, 10, 40], [0] * 6, [5, 5, 7, 7, -1, -1]) == [0, 0, 1, 1, 0, 1]


def test_a_few_stray_members_do_not_take_a_new_group_into_their_cluster() -> None:
    degrees = [0, 1, 2, 3, 60, 90, 91, 92, 93]
    assert kept(degrees, [0, 0, 0, 0, 1, 1, 1, 1, 1], [5] * 5 + [-1] * 4) == [0] * 5 + [1] * 4


def test_new_rows_that_outnumber_a_known_cluster_join_it_only_within_its_reach() -> None:
    assert kept([0, 1, 2, 3, 4, 5, 6], [0] * 7, [5, 5, -1, -1, -1, -1, -1]) == [0] * 7
    assert kept([0, 1, 80, 81, 82, 83, 84], [0] * 7, [5, 5, -1, -1, -1, -1, -1]) == [0, 0] + [1] * 5


def test_too_few_new_rows_are_no_cluster() -> None:
    assert kept([0, 1, 2, 80, 81], [0, 0, 0, 1, 1], [5, 5, 5, -1, -1]) == [0, 0, 0, -1, -1]


def test_known_clusters_are_given_up_only_for_what_separates_them_clearly_better() -> None:
    vectors = circle(0, 1, 90, 91)
    halves, mixed = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    assert is_clearly_better(vectors, halves, mixed, mixed)
    assert not is_clearly_better(vectors, mixed, halves, halves)
    assert not is_clearly_better(vectors, halves, halves, halves)
    assert not is_clearly_better(vectors, halves, mixed, np.full(4, -1))
