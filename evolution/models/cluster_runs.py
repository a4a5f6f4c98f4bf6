"""Clusterings as they were, to compare them and to draw their map."""

from django.db import models
from django.utils.translation import gettext as _

from evolution.models.cases import Cluster
from evolution.models.harnesses import Harness


class ClusterRun(models.Model):
    """One clustering of a harness's open failures, kept to compare it with others."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="cluster_runs")
    # what the clusterer and the embedder were and chose
    parameters = models.JSONField(default=dict)
    # cases, clusters, unclustered, seconds by stage, and how the old clusters were recognised
    figures = models.JSONField(default=dict)
    unclustered = models.BinaryField(default=b"")
    # the map: int64 case ids, and float32 pairs of coordinates in the same order
    point_ids = models.BinaryField(default=b"")
    points = models.BinaryField(default=b"")
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["harness", "-id"])]

    def __str__(self) -> str:
        return _("clustering %s") % self.pk


class RunGroup(models.Model):
    """The members of a cluster at the end of a clustering."""

    run = models.ForeignKey(ClusterRun, on_delete=models.CASCADE, related_name="groups")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="groups")
    # int64 case ids, ascending
    case_ids = models.BinaryField()
    # how it was recognised: members, centroid, merged, people or new
    origin = models.CharField(max_length=12)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["run", "cluster"], name="run_group_cluster")]

    def __str__(self) -> str:
        return f"{self.run_id}: {self.cluster_id}"
