import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import NearestNeighbors

from evolution.adapters.clustering import HdbscanClusterer, choose_min_cluster_size
from evolution.adapters.embedding import build_embedder
from evolution.adapters.neighbours import nearest_neighbours, neighbour_graph
from evolution.adapters.spectral import spectral_embedding
from evolution.ports import Vectors
from tests.evolution.intake import DATA, needs_data


def blobs(count: int, size: int, dimensions: int = 64) -> Vectors:
    """`count` tight groups of `size` unit vectors."""
    random = np.random.default_rng(7)
    centres = random.normal(size=(count, dimensions))
    points = np.repeat(centres, size, axis=0) + 0.15 * random.normal(size=(count * size, dimensions))
    return np.asarray(points / np.linalg.norm(points, axis=1, keepdims=True), dtype=np.float32)


@pytest.mark.parametrize("rows", [0, 1, 2])
def test_fewer_rows_than_a_cluster_are_in_none(rows: int) -> None:
    grouping = HdbscanClusterer().group(blobs(1, 2)[:rows])
    assert grouping.labels == [-1] * rows
    assert grouping.strengths == [0.0] * rows


@pytest.mark.parametrize(("count", "size"), [(2, 5), (3, 8), (6, 30)])
def test_clear_groups_are_found(count: int, size: int) -> None:
    labels = HdbscanClusterer().group(blobs(count, size)).labels
    assert adjusted_rand_score(np.repeat(range(count), size), labels) > 0.9


@pytest.mark.parametrize("rows", [3, 4, 14, 15, 16, 40])
def test_every_number_of_rows_has_an_answer(rows: int) -> None:
    random = np.random.default_rng(rows).normal(size=(rows, 32))
    vectors = (random / np.linalg.norm(random, axis=1, keepdims=True)).astype(np.float32)
    assert len(HdbscanClusterer().group(vectors).labels) == rows


def test_equal_rows_share_their_cluster() -> None:
    base = blobs(3, 12)
    vectors = np.concatenate([base, np.repeat(base[:1], 5, axis=0)])
    labels = HdbscanClusterer().group(vectors).labels
    assert len({labels[0], *labels[-5:]}) == 1


def test_enough_equal_rows_are_a_cluster() -> None:
    vectors = np.repeat(blobs(2, 1), [4, 1], axis=0)
    assert HdbscanClusterer().group(vectors).labels == [0, 0, 0, 0, -1]


def test_the_same_rows_give_the_same_clusters() -> None:
    vectors = blobs(8, 12)
    assert HdbscanClusterer().group(vectors) == HdbscanClusterer().group(vectors)


def test_separate_components_keep_apart_in_the_spectral_embedding() -> None:
    points = spectral_embedding(neighbour_graph(blobs(4, 20), 5), 4)
    centres = [points[start : start + 20].mean(axis=0) for start in range(0, 80, 20)]
    assert min(np.linalg.norm(a - b) for n, a in enumerate(centres) for b in centres[:n]) > 0.5


def test_the_smallest_cluster_grows_with_the_data() -> None:
    assert [choose_min_cluster_size(rows) for rows in (0, 100, 900, 50_000)] == [3, 3, 6, 8]


def test_nearest_neighbours_are_those_that_scikit_learn_finds() -> None:
    points = blobs(4, 30)
    rows, distances = nearest_neighbours(points, 6)
    peer = NearestNeighbors(n_neighbors=6, algorithm="brute").fit(points)
    expected, places = peer.kneighbors()
    assert np.array_equal(np.sort(rows), np.sort(places))
    assert np.allclose(distances, expected, atol=1e-3)


def test_the_large_graph_s_subspace_tells_the_same_groups_apart_as_all_eigenvectors() -> None:
    vectors = blobs(8, 100)
    points = spectral_embedding(neighbour_graph(vectors, 10), 8)
    centres = points.reshape(8, 100, 8).mean(axis=1)
    nearest = np.linalg.norm(points[:, None] - centres[None], axis=2).argmin(axis=1)
    assert np.array_equal(nearest, np.repeat(range(8), 100))


def test_two_groups_of_near_identical_rows_are_one() -> None:
    one, other = blobs(2, 1)
    twin = one + 0.02 * other
    vectors = np.stack([one] * 5 + [twin / np.linalg.norm(twin)] * 5 + [other] * 5).astype(np.float32)
    assert HdbscanClusterer().group(vectors).labels == [0] * 10 + [1] * 5


def test_known_groups_stay_when_few_rows_come() -> None:
    vectors = blobs(12, 30)
    known = np.repeat(range(6), 60)
    known[::6] = -1
    labels = np.array(HdbscanClusterer().group(vectors[:40], known[:40].tolist()).labels)
    assert len(labels) == 40
    grouping = HdbscanClusterer().group(vectors, np.repeat(range(12), 30).tolist())
    assert adjusted_rand_score(np.repeat(range(12), 30), grouping.labels) == 1
    assert grouping.parameters["kept"]


def test_known_groups_that_say_nothing_are_given_up() -> None:
    vectors = blobs(8, 40)
    known = (np.arange(320) % 2).tolist()
    grouping = HdbscanClusterer().group(vectors, known)
    assert not grouping.parameters["kept"]
    assert adjusted_rand_score(np.repeat(range(8), 40), grouping.labels) > 0.9


@needs_data
def test_real_questions_fall_into_their_intents() -> None:
    lines = (DATA / "intents" / "banking77_test.tsv").read_text().splitlines()[1:]
    rows = [(line.rsplit("\t", 1)[0], line.rsplit("\t", 1)[1]) for line in lines]
    chosen = sorted({label for _, label in rows})[::10]
    rows = [(text, label) for text, label in rows if label in chosen]
    labels = np.array(HdbscanClusterer().group(build_embedder().embed([text for text, _ in rows])).labels)
    clustered = labels >= 0
    assert clustered.mean() > 0.6
    assert adjusted_rand_score(np.array([label for _, label in rows])[clustered], labels[clustered]) > 0.5
