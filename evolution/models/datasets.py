"""Datasets: immutable versions of cases with known right answers, split by what they may be used for."""

from django.db import models

from evolution.models.harnesses import Harness
from evolution.states import Split


class Dataset(models.Model):
    """A named set of cases for one harness."""

    harness = models.ForeignKey(Harness, on_delete=models.PROTECT, related_name="datasets")
    name = models.SlugField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["harness", "name"], name="dataset_name")]

    def __str__(self) -> str:
        return self.name


class DatasetVersion(models.Model):
    """An immutable version; `digest` is the SHA-256 of its cases."""

    dataset = models.ForeignKey(Dataset, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(fields=["dataset", "number"], name="dataset_version_number"),
            models.UniqueConstraint(fields=["dataset", "digest"], name="dataset_version_digest"),
        ]

    def __str__(self) -> str:
        return f"{self.dataset.name} v{self.number}"


class DatasetCase(models.Model):
    """A request with its context, tool fixtures and what a right reply states and must not claim."""

    version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="cases")
    key = models.CharField(max_length=100)
    category = models.CharField(max_length=64)
    language = models.CharField(max_length=8)
    split = models.CharField(max_length=12, choices=Split)
    request = models.JSONField()
    context = models.JSONField()
    fixtures = models.JSONField(default=dict)
    # faults that strike its tool calls in every evaluation: see harness_repo.runtime.faults
    faults = models.JSONField(default=list)
    expected = models.JSONField(default=dict)

    class Meta:
        ordering = ["key"]
        constraints = [models.UniqueConstraint(fields=["version", "key"], name="dataset_case_key")]

    def __str__(self) -> str:
        return self.key
