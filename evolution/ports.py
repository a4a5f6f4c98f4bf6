"""What the loop needs from the outside: the contracts that the adapters keep. ChatModel is harness_repo's."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from harness_repo.runtime.chat import ChatModel

Vectors = NDArray[np.float32]


@dataclass(frozen=True)
class Record:
    """One record of an import, as a format's reader hands it over, fit for PostgreSQL."""

    # format, such as tau-bench, and the record's id there
    source: str
    source_id: str
    # whether it went wrong; what passed is counted only
    failed: bool
    # line of the file where the record starts, 1-based
    line: int
    request: dict[str, Any] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    # trajectory/1
    trajectory: dict[str, Any] = field(default_factory=dict)
    reply: str = ""
    symptom: str = ""
    scores: dict[str, Any] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)
    category: str = ""
    harness_commit: str = ""


@dataclass(frozen=True)
class Rejected:
    """A record that can't be used, and why; the others of its file are read all the same."""

    # line of the file where the record starts, 1-based
    line: int
    reason: str
    # its place among the records, 1-based; 0 where the line says it all
    number: int = 0


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


class NamedModel(NamedTuple):
    """A chat model and the name that requests to it carry."""

    model: ChatModel
    name: str
