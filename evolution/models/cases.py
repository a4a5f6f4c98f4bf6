"""Failure cases, their vectors, and the clusters they fall into."""

from django.db import models
from django.utils.translation import gettext as _

from evolution.models.harnesses import Harness
from evolution.states import CaseState, ClusterState


class Cluster(models.Model):
    """Failures with one cause, as far as we can tell. Keeps its number when failures are clustered again."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="clusters")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    state = models.CharField(max_length=12, choices=ClusterState, default=ClusterState.NEW)
    # float32 bytes, the mean of the members' unit vectors, normalised; used to recognise the cluster again
    centroid = models.BinaryField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["harness", "number"], name="cluster_number")]

    def __str__(self) -> str:
        return _("cluster %s") % self.number


class FailureCase(models.Model):
    """Something that went wrong, from an import or an evaluation. Identical ones are counted."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="failures")
    # format or origin, such as tau-bench or evaluation; `source_id` is the record's id there
    source = models.CharField(max_length=64)
    source_id = models.CharField(max_length=200)
    # SHA-256 of what makes two failures the same failure: harness, request, reply and symptom
    fingerprint = models.CharField(max_length=64)
    # how often it was seen
    count = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=12, choices=CaseState, default=CaseState.OPEN)
    category = models.CharField(max_length=64, blank=True)
    language = models.CharField(max_length=8, blank=True)
    # one line for lists
    title = models.CharField(max_length=300)
    request = models.JSONField(default=dict)
    context = models.JSONField(default=dict)
    # trajectory/1, see harness_repo.runtime.trajectory
    trajectory = models.JSONField(default=dict)
    reply = models.TextField(blank=True)
    # what the judge, a person or the source said is wrong
    symptom = models.TextField(blank=True)
    # {"accuracy": 0-1, "effectiveness": 0-1, "reward": ...}; what the source has
    scores = models.JSONField(default=dict)
    findings = models.JSONField(default=list)
    harness_commit = models.CharField(max_length=40, blank=True)
    # set on failures that an evaluation found
    dataset_case = models.ForeignKey(
        "evolution.DatasetCase", null=True, blank=True, on_delete=models.SET_NULL, related_name="failures"
    )
    evaluation = models.ForeignKey(
        "evolution.Evaluation", null=True, blank=True, on_delete=models.SET_NULL, related_name="failures"
    )
    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.SET_NULL, related_name="members"
    )
    # membership strength in its cluster, 0-1
    strength = models.FloatField(null=True, blank=True)
    # the text that was embedded, shown on the case
    embedded_text = models.TextField(blank=True)
    # why it was ignored
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(fields=["harness", "source", "source_id"], name="failure_source_id"),
        ]
        indexes = [
            models.Index(fields=["harness", "state", "-id"]),
            models.Index(fields=["harness", "fingerprint"]),
        ]

    def __str__(self) -> str:
        return _("case %s") % self.pk


class Sighting(models.Model):
    """Another id under which an identical failure was seen; a case's count is 1 + its sightings."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="sightings")
    case = models.ForeignKey(FailureCase, on_delete=models.CASCADE, related_name="sightings")
    source = models.CharField(max_length=64)
    source_id = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["harness", "source", "source_id"], name="sighting_source_id")
        ]

    def __str__(self) -> str:
        return f"{self.source} {self.source_id}"


class Embedding(models.Model):
    """The vector of one text under one model, so that it is never computed twice."""

    # SHA-256 of the text
    digest = models.CharField(max_length=64)
    model = models.CharField(max_length=200)
    # float32 bytes of a unit vector
    vector = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "digest"], name="embedding_text")]

    def __str__(self) -> str:
        return f"{self.model} {self.digest[:12]}"
