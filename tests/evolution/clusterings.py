"""Clusterings by hand: vectors in the plane, middles of clusters, and what a clustering leaves behind."""

from collections.abc import Mapping, Sequence

import numpy as np

from evolution.loop.embeddings import digest_of
from evolution.models import Cluster, ClusterRun, Embedding, FailureCase, Harness, RunGroup

EMBEDDER = "of tests"


def keep_vector(text: str, vector: Sequence[float]) -> None:
    """Keep the vector of a text, as if it had been embedded."""
    Embedding.objects.create(model=EMBEDDER, digest=digest_of(text), vector=_floats(vector))


def place(cluster: Cluster, middle: Sequence[float], reach: float = 0.7) -> None:
    """Put the middle of a cluster somewhere; the harness counts as clustered by the embedder of the tests."""
    Cluster.objects.filter(pk=cluster.pk).update(centroid=_floats(middle), reach=reach)
    if not ClusterRun.objects.filter(harness=cluster.harness).exists():
        keep_run(cluster.harness, {})


def keep_run(harness: Harness, groups: Mapping[Cluster | None, Sequence[FailureCase]]) -> ClusterRun:
    """A clustering that found these groups; None has what it left out. The failures stand in a row on its map."""
    ids = np.array(sorted(case.pk for cases in groups.values() for case in cases), dtype="<i8")
    places = np.stack([np.linspace(-1, 1, len(ids)), np.zeros(len(ids))], axis=1).astype("<f4")
    run = ClusterRun.objects.create(
        harness=harness,
        parameters={"embedder": EMBEDDER},
        figures={
            "cases": len(ids),
            "clusters": len(groups),
            "unclustered": 0,
            "origins": {},
            "seconds": {"map": 1},
        },
        point_ids=ids.tobytes(),
        points=places.tobytes(),
        created_by="tests",
    )
    for cluster, cases in groups.items():
        own = np.array(sorted(case.pk for case in cases), dtype="<i8").tobytes()
        if cluster is not None:
            RunGroup.objects.create(run=run, cluster=cluster, case_ids=own, origin="members")
    return run


def _floats(vector: Sequence[float]) -> bytes:
    return np.array(vector, dtype=np.float32).tobytes()
