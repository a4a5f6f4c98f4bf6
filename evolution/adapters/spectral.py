"""The leading eigenvectors of a neighbour graph: few dimensions in which density says something."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]

# Up to here the matrix is small enough for all eigenvectors.
_DENSE = 600
# Vectors beyond the wanted ones, and rounds of filtering, that bring the wanted ones out.
_SPARE = 32
_ROUNDS = 3
_DEGREE = 8
# Eigenvalues below this are filtered away.
_EDGE = 0.7


def spectral_embedding(graph: Any, dimensions: int) -> Doubles:
    """Return the graph's leading eigenvectors, rows scaled to 1; shape (rows, dimensions).

    Ng, Jordan and Weiss, "On Spectral Clustering", 2001. In large graphs the eigenvectors are those of a subspace
    that a polynomial filter has brought close to the leading one (Zhou et al., "Chebyshev-filtered subspace
    iteration", 2006): near enough to tell groups apart, and the same every time.
    """
    from scipy.sparse import diags  # noqa: PLC0415  heavy

    scale = 1 / np.sqrt(np.maximum(np.asarray(graph.sum(axis=1)).ravel(), 1e-12))
    normalised = (diags(scale) @ graph @ diags(scale)).tocsr()
    if graph.shape[0] <= max(_DENSE, 3 * (dimensions + _SPARE)):
        # A faint link joins what is apart: without it, eigenvectors of separate parts would be mixed at will.
        matrix = normalised.toarray() + 1e-6 / len(scale)
        vectors = np.linalg.eigh(matrix)[1][:, ::-1]
    else:
        vectors = _filtered_subspace(normalised.astype(np.float32), dimensions + _SPARE)
    chosen = vectors[:, :dimensions].astype(np.float64)
    return np.asarray(chosen / np.maximum(np.linalg.norm(chosen, axis=1, keepdims=True), 1e-12))


def _filtered_subspace(matrix: Any, size: int) -> NDArray[np.float32]:
    """Ritz vectors of the filtered subspace, the largest eigenvalue first."""
    vectors = np.random.default_rng(0).normal(size=(matrix.shape[0], size)).astype(np.float32)
    for _ in range(_ROUNDS):
        vectors = _filter(matrix, np.linalg.qr(vectors)[0])
    vectors = np.linalg.qr(vectors)[0]
    _values, rotation = np.linalg.eigh(vectors.T @ (matrix @ vectors))
    return np.asarray((vectors @ rotation)[:, ::-1])


def _filter(matrix: Any, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """A Chebyshev polynomial of the matrix: small on [-1, edge], steep above."""
    half, middle = np.float32((_EDGE + 1) / 2), np.float32((_EDGE - 1) / 2)
    last, current = vectors, (matrix @ vectors - middle * vectors) / half
    for _ in range(_DEGREE - 1):
        last, current = current, (2 / half) * (matrix @ current - middle * current) - last
    return np.asarray(current)
