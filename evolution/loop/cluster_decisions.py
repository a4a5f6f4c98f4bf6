"""What people decide about clusters, in one place: failures that are moved are pinned, and centres follow.

Callers hold the harness's lock and write the audit trail.
"""

from collections.abc import Collection, Iterable

from django.db.models import Max
from django.db.models.functions import Now

from evolution.loop.embeddings import read_member_vectors
from evolution.loop.grouping import centroid_of, reach_of
from evolution.models import Cluster, ClusterRun, FailureCase, Harness

# Members that a centre is computed from, the newest.
READ = 2000
# Cases that the audit trail names.
NAMED = 200


def pin_cases(harness: Harness, case_ids: Collection[int], cluster: Cluster) -> set[int]:
    """Put failures into a cluster for good; returns the ids of the clusters that changed."""
    cases = FailureCase.objects.filter(harness=harness, pk__in=case_ids)
    touched = {pk for pk in cases.values_list("cluster_id", flat=True) if pk}
    cases.update(cluster=cluster, strength=1.0, is_pinned=True, updated_at=Now())
    return touched | {cluster.pk}


def make_cluster(harness: Harness, name: str, named_by: str) -> Cluster:
    """Make a cluster with the next number."""
    return Cluster.objects.create(harness=harness, number=next_number(harness), name=name, named_by=named_by)


def next_number(harness: Harness) -> int:
    """The number of the next cluster that is made."""
    return (Cluster.objects.filter(harness=harness).aggregate(last=Max("number"))["last"] or 0) + 1


def embedder_in_use(harness: Harness) -> str:
    """The model that embedded the failures of the newest clustering; empty before the first."""
    run = ClusterRun.objects.filter(harness=harness).order_by("-pk").only("parameters").first()
    return str(run.parameters.get("embedder") or "") if run else ""


def note_moved(harness: Harness, cluster_ids: Iterable[int]) -> None:
    """Let the centres of clusters follow their members; before the first clustering there are none."""
    model = embedder_in_use(harness)
    if not model:
        return
    for cluster in Cluster.objects.filter(harness=harness, pk__in=list(cluster_ids)):
        _ids, _owners, vectors = read_member_vectors(model, [cluster.pk], READ)
        # One without members keeps the centre that it is recognised by.
        if len(vectors):
            centre = centroid_of(vectors)
            cluster.centroid, cluster.reach = centre.tobytes(), reach_of((vectors @ centre).clip(0, 1))
            cluster.save(update_fields=["centroid", "reach"])
