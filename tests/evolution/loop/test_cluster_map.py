import numpy as np

from evolution.loop.cluster_map import lay_out


def groups(count: int, size: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    centres = random.normal(size=(count, 32))
    points = np.repeat(centres, size, axis=0) + 0.2 * random.normal(size=(count * size, 32))
    vectors = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    return vectors, np.repeat(np.arange(count), size)


def test_members_stand_nearer_to_their_own_middle_than_to_any_other() -> None:
    vectors, labels = groups(12, 20)
    places = lay_out(vectors, labels)
    middles = np.stack([places[labels == label].mean(axis=0) for label in range(12)])
    nearest = np.linalg.norm(places[:, None] - middles[None], axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.98


def test_clusters_that_are_alike_stand_side_by_side() -> None:
    random = np.random.default_rng(5)
    one, far = random.normal(size=(2, 32))
    centres = [one, one + 0.3 * random.normal(size=32), far, -one]
    vectors = np.concatenate([centre + 0.1 * random.normal(size=(10, 32)) for centre in centres])
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    places = lay_out(vectors, np.repeat(np.arange(4), 10)).reshape(4, 10, 2).mean(axis=1)
    distances = np.linalg.norm(places[0] - places[1:], axis=1)
    assert distances.argmin() == 0


def test_the_map_is_the_same_every_time_and_within_its_frame() -> None:
    vectors, labels = groups(5, 8)
    labels[::7] = -1
    places = lay_out(vectors, labels)
    assert np.array_equal(places, lay_out(vectors, labels))
    assert np.abs(places).max() <= 1.0001


def test_every_number_of_failures_has_a_map() -> None:
    vectors, _labels = groups(1, 4)
    for rows in range(5):
        for label in (-1, 0):
            assert lay_out(vectors[:rows], np.full(rows, label)).shape == (rows, 2)
    same = np.repeat(vectors[:1], 6, axis=0)
    assert np.isfinite(lay_out(same, np.zeros(6, dtype=int))).all()
