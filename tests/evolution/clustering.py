"""What the tests of clusters share: an embedder and a clusterer whose groups the tests choose."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evolution.loop.clusters import cluster_failures
from evolution.models import FailureCase, Harness
from evolution.ports import Grouping, Vectors
from tests.evolution.intake import make_failure
from tests.evolution.measured import DEV


class Topics:
    """Embeds a text by its first character, so that tests choose the groups."""

    name = "topics"

    def __init__(self) -> None:
        self.embedded: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.embedded += texts
        return np.eye(26, dtype=np.float32)[[ord(text[0]) - ord("a") for text in texts]]


class ByRow:
    """Groups equal rows of three and more."""

    def group(self, vectors: Vectors, known: Sequence[int] | None = None) -> Grouping:  # noqa: ARG002  the port's
        topics = [int(row) for row in vectors.argmax(axis=1)] if len(vectors) else []
        labels = [topic if topics.count(topic) >= 3 else -1 for topic in topics]
        return Grouping(labels, [float(label >= 0) for label in labels])


def cluster(harness: Harness, topics: Topics | None = None) -> dict[str, Any]:
    return cluster_failures(DEV, harness, topics or Topics(), ByRow(), lambda *_: None)


def add(harness: Harness, topic: str, count: int = 3, **fields: Any) -> list[FailureCase]:
    return [make_failure(harness, f"{topic} {number}", **fields) for number in range(count)]


def number_of(case: FailureCase) -> int | None:
    case.refresh_from_db()
    return case.cluster.number if case.cluster else None
