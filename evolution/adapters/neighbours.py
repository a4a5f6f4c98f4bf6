"""Nearest neighbours of vectors, and the graph that they make: what the clusterer's reduction starts from.

Exact and deterministic, block by block, so that 50,000 rows need no square matrix.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Rows = NDArray[np.int64]

# Numbers of one block of distances: 64 MB.
_BLOCK = 2**24
# Halvings by which the width of a row's neighbourhood is found.
_HALVINGS = 32


def principal_components(vectors: Floats, dimensions: int) -> Floats:
    """Return the rows on their leading principal axes, shape (rows, at most `dimensions`)."""
    centred = vectors - vectors.mean(axis=0)
    if vectors.shape[1] <= dimensions:
        return np.ascontiguousarray(centred, dtype=np.float32)
    _values, axes = np.linalg.eigh(centred.T @ centred)
    return np.ascontiguousarray(centred @ axes[:, -dimensions:], dtype=np.float32)


def nearest_neighbours(points: Floats, count: int) -> tuple[Rows, Floats]:
    """Return each row's `count` nearest other rows and their distances, nearest first; shapes (rows, count)."""
    # Its selection of the smallest is ten times as fast as numpy's.
    import torch  # noqa: PLC0415  heavy

    table = torch.from_numpy(np.ascontiguousarray(points, dtype=np.float32))
    squares = (table * table).sum(dim=1)
    size = max(1, _BLOCK // max(len(points), 1))
    found, distances = [], []
    for start in range(0, len(points), size):
        block = table[start : start + size]
        # Squared distances less the block's own squares, which change no order.
        beside = torch.addmm(squares.expand(len(block), -1), block, table.T, alpha=-2)
        own = torch.arange(len(block))
        beside[own, own + start] = float("inf")
        values, rows = torch.topk(beside, count, dim=1, largest=False)
        values += squares[start : start + size, None]
        found.append(rows.numpy())
        distances.append(values.clamp_(min=0).sqrt_().numpy())
    return np.concatenate(found), np.concatenate(distances)


def neighbour_graph(points: Floats, count: int) -> Any:
    """Return the symmetric graph of nearest neighbours as a sparse matrix, weights in (0, 1].

    A neighbour counts by how near it is beside the row's other neighbours, so that loose groups hold together as
    well as tight ones. McInnes, Healy and Melville, "UMAP", 2018, section 3.1.
    """
    from scipy.sparse import csr_matrix  # noqa: PLC0415  heavy

    rows, distances = nearest_neighbours(points, count)
    places = np.repeat(np.arange(len(rows)), count)
    weights = _closeness(distances).astype(np.float64).ravel()
    graph = csr_matrix((weights, (places, rows.ravel())), shape=(len(rows), len(rows)))
    return (graph + graph.T - graph.multiply(graph.T)).tocsr()


def _closeness(distances: Floats) -> Floats:
    """exp(-(distance - nearest) / width), the width such that a row's weights sum to log2(neighbours + 1)."""
    beyond = distances - distances[:, :1]
    low, high = np.full((len(beyond), 1), 1e-6), np.full((len(beyond), 1), 10.0)
    wanted = np.log2(distances.shape[1] + 1)
    for _ in range(_HALVINGS):
        width = (low + high) / 2
        is_wide = np.exp(-beyond / width).sum(axis=1, keepdims=True) > wanted
        low, high = np.where(is_wide, low, width), np.where(is_wide, width, high)
    return np.asarray(np.maximum(np.exp(-beyond / ((low + high) / 2)), 1e-6), dtype=np.float32)
