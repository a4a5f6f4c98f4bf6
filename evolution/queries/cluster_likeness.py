"""What is near to what: failures just outside a cluster, clusters like one, and where unclustered failures would go.

Likeness is the cosine of texts that were embedded by the model of the newest clustering; without one there is none.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from django.db import connection
from django.db.models import Exists, OuterRef
from numpy.typing import NDArray

from evolution.loop.cluster_decisions import embedder_in_use
from evolution.loop.embeddings import digest_of, read_member_vectors
from evolution.models import Cluster, Embedding, FailureCase, Harness
from evolution.queries.cases import read_rows
from evolution.states import CaseState

Vector = NDArray[np.float32]

# Clusters whose members are looked at for those just outside of another, and of each and of the unclustered how many.
NEIGHBOURS = 5
LOOKED_AT = 200
MOST_UNCLUSTERED = 1_000
NEAR_MISSES = 8
# Failures of which the nearest are shown: titles repeat.
CANDIDATES = 60
# Cosine below which nobody would see a likeness.
LEAST_LIKENESS = 0.3


@dataclass(frozen=True)
class NearMiss:
    """An open failure that is not in a cluster, but near to its middle."""

    case: FailureCase
    likeness: float
    # whether it is nearer than the cluster reaches: a new failure like it would come in
    is_within: bool


@dataclass(frozen=True)
class NearCluster:
    """A cluster, how near its middle is, and whether it reaches so far."""

    cluster: Cluster
    likeness: float
    is_within: bool = False


def list_near_misses(cluster: Cluster) -> list[NearMiss]:
    """The open failures nearest to a cluster that are not in it, the nearest first; of one title one."""
    middle, model = _middle(cluster), embedder_in_use(cluster.harness)
    if middle is None or not model:
        return []
    near = [other.cluster.pk for other in list_near_clusters(cluster, NEIGHBOURS)]
    ids, vectors = _outside(cluster, near, model, len(middle))
    cosines = vectors @ middle
    nearest = np.argsort(-cosines, kind="stable")[:CANDIDATES]
    likeness = {int(ids[row]): float(cosines[row]) for row in nearest}
    shown: dict[str, NearMiss] = {}
    for case in read_rows(list(likeness)):
        if case.state == CaseState.OPEN and likeness[case.pk] >= LEAST_LIKENESS:
            is_within = cluster.reach is not None and likeness[case.pk] >= cluster.reach
            shown.setdefault(case.title, NearMiss(case, likeness[case.pk], is_within))
    return list(shown.values())[:NEAR_MISSES]


def list_near_clusters(cluster: Cluster, limit: int) -> list[NearCluster]:
    """The clusters whose middles are nearest, the nearest first."""
    middle = _middle(cluster)
    if middle is None:
        return []
    near = []
    for other in _living(cluster.harness):
        centre = _middle(other)
        if other.pk != cluster.pk and centre is not None and centre.shape == middle.shape:
            near.append(NearCluster(other, float(centre @ middle)))
    return sorted(near, key=lambda entry: (-entry.likeness, entry.cluster.number))[:limit]


def suggest_clusters(harness: Harness, cases: Sequence[FailureCase]) -> dict[int, NearCluster]:
    """The cluster whose middle is nearest to each of some failures, by the failure's id."""
    model = embedder_in_use(harness)
    texts = dict(
        FailureCase.objects.filter(pk__in=[case.pk for case in cases])
        .exclude(embedded_text="")
        .values_list("pk", "embedded_text")
    )
    digests = {pk: digest_of(text) for pk, text in texts.items()}
    stored = Embedding.objects.filter(model=model, digest__in=set(digests.values()))
    vectors = {row.digest: np.frombuffer(row.vector, dtype=np.float32) for row in stored}
    clusters = list(_living(harness))
    return {
        pk: found
        for pk, digest in digests.items()
        if digest in vectors and (found := _nearest(vectors[digest], clusters)) is not None
    }


def _nearest(vector: Vector, clusters: Iterable[Cluster]) -> NearCluster | None:
    best = None
    for cluster in clusters:
        centre = _middle(cluster)
        if centre is None or centre.shape != vector.shape:
            continue
        cosine = float(centre @ vector)
        if best is None or cosine > best.likeness:
            best = NearCluster(cluster, cosine, cluster.reach is not None and cosine >= cluster.reach)
    return best


def _living(harness: Harness) -> Iterable[Cluster]:
    """Those with a middle, and with failures: one that lost them all takes none in."""
    clusters = Cluster.objects.filter(harness=harness, merged_into=None, centroid__isnull=False)
    clusters = clusters.filter(Exists(FailureCase.objects.filter(cluster=OuterRef("pk"))))
    return clusters.only("number", "name", "state", "centroid", "reach", "harness_id").order_by("number")


def _middle(cluster: Cluster) -> Vector | None:
    return np.frombuffer(cluster.centroid, dtype=np.float32) if cluster.centroid else None


def _outside(
    cluster: Cluster, neighbours: list[int], model: str, dimensions: int
) -> tuple[NDArray[np.int64], Vector]:
    """Ids and vectors of members of the neighbours, and of failures in no cluster."""
    ids, _owners, vectors = read_member_vectors(model, neighbours, LOOKED_AT)
    with connection.cursor() as cursor:
        cursor.execute(_UNCLUSTERED, [cluster.harness_id, MOST_UNCLUSTERED, model])
        free = cursor.fetchall()
    parts = [vectors] if vectors.shape[1] == dimensions else []
    parts += [np.frombuffer(vector, dtype=np.float32)[None] for _pk, vector in free]
    table = np.concatenate([part for part in parts if part.shape[1] == dimensions] or [_none(dimensions)])
    return np.concatenate([ids, np.array([pk for pk, _vector in free], dtype=np.int64)]), table


def _none(dimensions: int) -> Vector:
    return np.zeros((0, dimensions), dtype=np.float32)


_UNCLUSTERED = """
SELECT free.id, embedding.vector
FROM (
    SELECT id, embedded_text FROM evolution_failurecase
    WHERE harness_id = %s AND state = 'open' AND cluster_id IS NULL AND embedded_text <> ''
    ORDER BY id DESC LIMIT %s
) free
JOIN evolution_embedding embedding
  ON embedding.digest = encode(sha256(convert_to(free.embedded_text, 'UTF8')), 'hex') AND embedding.model = %s
ORDER BY free.id
"""
