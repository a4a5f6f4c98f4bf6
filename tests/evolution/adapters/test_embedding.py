import numpy as np
import pytest

from evolution.adapters.embedding import SentenceTransformerEmbedder, build_embedder


@pytest.fixture(scope="module")
def embedder() -> SentenceTransformerEmbedder:
    return build_embedder()


def test_vectors_are_unit_rows_in_order(embedder: SentenceTransformerEmbedder) -> None:
    texts = ["发货要几天", "short", "a much longer text " * 200, ""]
    vectors = embedder.embed(texts)
    assert (vectors.shape, vectors.dtype.name) == ((4, 512), "float32")
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert vectors[1] == pytest.approx(embedder.embed(["short"])[0], abs=1e-5)


def test_meaning_is_shared_between_languages(embedder: SentenceTransformerEmbedder) -> None:
    price, same, other = embedder.embed(["这件多少钱？", "How much is this one?", "什么时候发货？"])
    assert price @ same > price @ other


def test_the_same_texts_give_the_same_vectors(embedder: SentenceTransformerEmbedder) -> None:
    texts = [f"{number}号链接还有货吗" for number in range(40)]
    assert np.array_equal(embedder.embed(texts), embedder.embed(texts))
    assert embedder.embed([]).shape[0] == 0
