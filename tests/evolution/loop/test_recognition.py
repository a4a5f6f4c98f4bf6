import numpy as np

from evolution.loop.recognition import Known, Origin, recognise

X, Y, Z = np.eye(3, dtype=np.float32)


def numbers(groups: list[tuple[frozenset[int], np.ndarray]], known: list[Known]) -> dict[int, int]:
    return {index: found.number for index, found in recognise(groups, known).items()}


def test_shared_members_outweigh_centroids() -> None:
    known = [Known(1, frozenset({1, 2, 3}), Y), Known(2, frozenset({8}), X)]
    assert numbers([(frozenset({1, 2, 9}), X)], known) == {0: 1}
    assert numbers([(frozenset({7, 9}), X)], known) == {0: 2}
    assert numbers([(frozenset({3, 4, 5, 6, 7, 9}), -X)], known) == {}


def test_a_cluster_that_splits_goes_with_the_larger_part() -> None:
    known = [Known(1, frozenset(range(10)), None)]
    groups = [(frozenset({0, 1, 2}), X), (frozenset({3, 4, 5, 6, 7}), X)]
    assert numbers(groups, known) == {1: 1}


def test_all_parts_of_a_cluster_that_people_merged_are_it() -> None:
    known = [Known(1, frozenset(range(10)), None, is_merged=True), Known(1, frozenset(), Z, is_merged=True)]
    groups = [(frozenset({0, 1, 2}), X), (frozenset({3, 4, 5, 6}), Y), (frozenset({77}), Z)]
    found = recognise(groups, known)
    assert {index: entry.number for index, entry in found.items()} == {0: 1, 1: 1, 2: 1}
    assert [found[index].origin for index in (1, 0, 2)] == [Origin.MEMBERS, Origin.MERGED, Origin.MERGED]


def test_it_is_said_how_a_cluster_was_recognised() -> None:
    known = [Known(1, frozenset({1, 2}), X), Known(2, frozenset(), Y)]
    found = recognise([(frozenset({1, 2}), Z), (frozenset({5}), Y)], known)
    assert [found[0].origin, found[1].origin] == [Origin.MEMBERS, Origin.CENTROID]


def test_centres_of_another_embedder_say_nothing() -> None:
    known = [Known(1, frozenset(), np.ones(7, dtype=np.float32))]
    assert recognise([(frozenset({1}), X)], known) == {}
