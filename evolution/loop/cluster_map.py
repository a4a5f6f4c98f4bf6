"""Where failures stand on the map of a clustering: clusters by likeness, their members around their middle.

Deterministic, and without the optimisation of each point that UMAP or t-SNE would do: distances between clusters say
how alike they are, distances within one how far a member is from its middle; no more than that.
"""

import numpy as np
from numpy.typing import NDArray

from evolution.ports import Vectors

Doubles = NDArray[np.float64]
Labels = NDArray[np.int64]

# Axes in which members are compared.
_AXES = 16
# Rounds in which clusters find their places, and what all of them may cost in pairs of clusters.
_ROUNDS = 200
_PAIRS = 20_000_000
# Radius of a cluster of one failure; the area grows with the members.
_RADIUS = 0.5
_GAP = 1.3


def lay_out(vectors: Vectors, labels: Labels) -> NDArray[np.float32]:
    """Return a place for each row, shape (rows, 2); label -1 is in no cluster. Coordinates are within [-1, 1]."""
    if not len(vectors):
        return np.zeros((0, 2), dtype=np.float32)
    points = _reduce(vectors)
    count = int(labels.max()) + 1
    if count == 0:
        return _fit(_plane(points))
    centres = np.stack([points[labels == label].mean(axis=0) for label in range(count)])
    sizes = np.bincount(labels[labels >= 0], minlength=count)
    radii = _RADIUS * np.sqrt(sizes)
    middles = _spread(_place(centres), radii)
    places = np.zeros((len(vectors), 2))
    for label in range(count):
        own = labels == label
        places[own] = middles[label] + radii[label] * _disc(points[own] - centres[label])
    outside = labels < 0
    places[outside] = _between(points[outside], centres, middles)
    return _fit(places)


def _reduce(vectors: Vectors) -> Doubles:
    centred = (vectors - vectors.mean(axis=0)).astype(np.float64)
    return np.asarray(centred @ _axes(centred, _AXES))


def _axes(centred: Doubles, count: int) -> Doubles:
    """The leading principal axes, each pointing to where its largest component is positive."""
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1][:, :count]
    signs = np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])])
    return np.asarray(axes * np.where(signs == 0, 1, signs))


def _plane(points: Doubles) -> Doubles:
    plane = points @ _axes(points, 2)
    return np.pad(plane, ((0, 0), (0, 2 - plane.shape[1])))


def _place(centres: Doubles) -> Doubles:
    """Places in the plane whose distances come close to those of the centres (SMACOF; de Leeuw, 1977)."""
    places = _plane(centres - centres.mean(axis=0))
    wanted = _distances(centres)
    for _ in range(_rounds(len(centres))):
        now = _distances(places)
        ratio = np.divide(wanted, now, out=np.zeros_like(wanted), where=now > 1e-12)
        pull = -ratio
        np.fill_diagonal(pull, ratio.sum(axis=1))
        places = pull @ places / len(places)
    return places


def _rounds(count: int) -> int:
    return max(10, min(_ROUNDS, _PAIRS // count**2))


def _spread(places: Doubles, radii: Doubles) -> Doubles:
    """Scale the places so that the discs have room, and push apart those that still overlap."""
    if len(places) < 2:
        return places
    needed = _GAP * (radii[:, None] + radii[None, :])
    extent = max(float(np.abs(places).max()), 1e-9)
    places = places / extent * np.sqrt((radii**2).sum()) * 2
    for _ in range(_rounds(len(places))):
        offsets = places[:, None] - places[None]
        distances = np.maximum(np.linalg.norm(offsets, axis=2), 1e-9)
        overlap = np.maximum(needed - distances, 0)
        np.fill_diagonal(overlap, 0)
        if not overlap.any():
            break
        places = places + (offsets / distances[..., None] * overlap[..., None]).sum(axis=1) * 0.25
    return places


def _disc(points: Doubles) -> Doubles:
    """The points in their own plane, the farthest at 1, spread so that the middle is not crowded."""
    if len(points) < 2:
        return np.zeros((len(points), 2))
    plane = _plane(points)
    lengths = np.linalg.norm(plane, axis=1)
    order = lengths.argsort(kind="stable").argsort(kind="stable")
    wanted = np.sqrt((order + 0.5) / len(points))
    scale = np.where(lengths > 1e-9, wanted, 0) / np.maximum(lengths, 1e-12)
    return np.asarray(plane * scale[:, None])


def _between(points: Doubles, centres: Doubles, middles: Doubles) -> Doubles:
    """Between the middles of the clusters that are nearest, nearer to the nearer."""
    if not len(points):
        return np.zeros((0, 2))
    distances = _far(points, centres)
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :3]
    weights = 1 / np.maximum(np.take_along_axis(distances, nearest, axis=1), 1e-6)
    weights /= weights.sum(axis=1, keepdims=True)
    angle = np.arange(len(points)) * 2.399963
    shift = np.stack([np.cos(angle), np.sin(angle)], axis=1) * _RADIUS
    return np.asarray((middles[nearest] * weights[..., None]).sum(axis=1) + shift)


def _far(points: Doubles, centres: Doubles) -> Doubles:
    squares = (points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1) - 2 * points @ centres.T
    return np.asarray(np.sqrt(np.maximum(squares, 0)))


def _distances(points: Doubles) -> Doubles:
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=2))


def _fit(places: Doubles) -> NDArray[np.float32]:
    middle = (places.max(axis=0) + places.min(axis=0)) / 2
    extent = max(float(np.abs(places - middle).max()), 1e-9)
    return np.asarray((places - middle) / extent, dtype=np.float32)
