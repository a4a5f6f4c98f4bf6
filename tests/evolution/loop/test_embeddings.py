import threading
from collections.abc import Sequence

import numpy as np
import pytest
from django.db import connection

from evolution.loop.embeddings import embed_texts
from evolution.models import Embedding
from evolution.ports import Vectors
from tests.evolution.clustering import Topics


def ignore(*_: object) -> None:
    pass


@pytest.mark.django_db
def test_vectors_come_in_the_order_of_the_texts_and_are_kept() -> None:
    topics = Topics()
    assert embed_texts(topics, ["b", "a", "b"], ignore).argmax(axis=1).tolist() == [1, 0, 1]
    assert embed_texts(topics, ["a", "c"], ignore).argmax(axis=1).tolist() == [0, 2]
    assert sorted(topics.embedded) == ["a", "b", "c"]


@pytest.mark.django_db
def test_another_model_has_its_own_vectors() -> None:
    one, other = Topics(), Topics()
    other.name = "other"
    embed_texts(one, ["a"], ignore), embed_texts(other, ["a"], ignore)
    assert (Embedding.objects.count(), other.embedded) == (2, ["a"])


@pytest.mark.django_db(transaction=True)
def test_two_workers_at_once_compute_a_text_once() -> None:
    together = threading.Barrier(2, timeout=10)
    embedded: list[str] = []

    class Slow(Topics):
        def embed(self, texts: Sequence[str]) -> Vectors:
            embedded.extend(texts)
            # Long enough for the other worker to come here, if it were let.
            threading.Event().wait(0.3)
            return super().embed(texts)

    found: list[Vectors] = []

    def work() -> None:
        together.wait()
        found.append(embed_texts(Slow(), ["a", "b"], ignore))
        connection.close()

    workers = [threading.Thread(target=work) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sorted(embedded) == ["a", "b"]
    assert np.array_equal(found[0], found[1])
