"""What the loop needs from the outside: the contracts that the adapters keep. ChatModel is harness_repo's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Turns texts into unit vectors; the same text always gives the same vector."""

    name: str

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Return one row per text, shape (len(texts), dimensions), L2 norm 1."""


@dataclass(frozen=True)
class Grouping:
    """A clusterer's answer."""

    # one label per row; -1 is "in no cluster"
    labels: list[int]
    # membership strength per row, 0-1
    strengths: list[float]
    # what the clusterer chose, kept for the record
    parameters: dict[str, Any] = field(default_factory=dict)


class Clusterer(Protocol):
    """Groups vectors by density; deterministic."""

    def group(self, vectors: Vectors) -> Grouping:
        """Return a label per row, in row order."""
