import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from evolution.adapters.clustering import HdbscanClusterer, choose_min_cluster_size, spectral_embedding
from evolution.adapters.embedding import build_embedder
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
    points = spectral_embedding(np.asarray(blobs(4, 20), dtype=np.float64), 4)
    centres = [points[start : start + 20].mean(axis=0) for start in range(0, 80, 20)]
    assert min(np.linalg.norm(a - b) for n, a in enumerate(centres) for b in centres[:n]) > 0.5


def test_the_smallest_cluster_grows_with_the_data() -> None:
    assert [choose_min_cluster_size(rows) for rows in (0, 100, 900, 10_000)] == [3, 3, 10, 33]


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
