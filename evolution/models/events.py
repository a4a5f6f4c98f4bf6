"""The audit trail, and the long work that pages follow."""

from django.db import models

from evolution.models.harnesses import Harness
from evolution.states import JobKind, JobState


class Event(models.Model):
    """One state change or decision, with actor and reason. The database refuses updates and deletes."""

    at = models.DateTimeField(auto_now_add=True)
    # user name or "system": text, so that the trail outlives the account
    actor = models.CharField(max_length=150)
    # kind.new_state or kind.action, such as proposal.confirmed
    verb = models.CharField(max_length=64)
    target_kind = models.CharField(max_length=32)
    target_id = models.BigIntegerField()
    # no foreign key: the trail outlives the harness
    harness_id = models.BigIntegerField(null=True)
    reason = models.TextField(blank=True)
    data = models.JSONField(default=dict)

    class Meta:
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["harness_id", "-id"]),
            models.Index(fields=["target_kind", "target_id"]),
        ]

    def __str__(self) -> str:
        return f"{self.actor} {self.verb} {self.target_id}"


class Job(models.Model):
    """A piece of long work; its progress stands here, so that a page can be reloaded."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="jobs")
    kind = models.CharField(max_length=10, choices=JobKind)
    # id of the cluster, diagnosis or proposal it is about; empty for the whole harness
    target_id = models.BigIntegerField(null=True, blank=True)
    # what else was asked for, such as {"model": name}
    parameters = models.JSONField(default=dict)
    state = models.CharField(max_length=8, choices=JobState, default=JobState.QUEUED)
    done = models.PositiveIntegerField(default=0)
    total = models.PositiveIntegerField(default=0)
    # what it is at, or what came of it
    message = models.TextField(blank=True)
    # JSON, what the command line prints
    result = models.JSONField(default=dict)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["harness", "kind", "-id"])]

    def __str__(self) -> str:
        return f"{self.kind} job {self.pk}"
