"""What models were asked on the way to a change, and what people say of it: reviews, threads, settled conflicts."""

from django.db import models
from django.utils.translation import gettext as _

from evolution.models.cases import Cluster
from evolution.models.events import Job
from evolution.models.harnesses import Harness
from evolution.states import ExchangePurpose, ReviewVerdict


class Exchange(models.Model):
    """One question to a model of the loop, its answers, and what they cost. Kept when nothing came of it too."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="exchanges")
    purpose = models.CharField(max_length=10, choices=ExchangePurpose)
    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.SET_NULL, related_name="exchanges"
    )
    # of a draft
    proposal = models.ForeignKey(
        "evolution.Proposal", null=True, blank=True, on_delete=models.SET_NULL, related_name="exchanges"
    )
    job = models.ForeignKey(Job, null=True, blank=True, on_delete=models.SET_NULL, related_name="exchanges")
    model = models.CharField(max_length=200)
    # messages, response_schema and parameters as first sent
    request = models.JSONField(default=dict)
    # in order: {"content", "finish_reason", "model", "prompt_tokens", "completion_tokens", "latency_ms", "problem"};
    # `problem` is what was wrong with it, and what the model was told in the repair round
    replies = models.JSONField(default=list)
    # what was shown and what was left out, for people: {"cases": [ids], "keys": [dataset keys], "cut": [...], ...}
    shown = models.JSONField(default=dict)
    # why nothing came of it
    error = models.TextField(blank=True)
    # of all replies together
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    # null where the model's price is unknown
    cost = models.DecimalField(max_digits=18, decimal_places=8, null=True, blank=True)
    currency = models.CharField(max_length=8, blank=True)
    seconds = models.FloatField(default=0)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return _("exchange %s") % self.pk


class Review(models.Model):
    """What a person decided about one version of a proposal's branch; it says nothing of another diff."""

    proposal = models.ForeignKey("evolution.Proposal", on_delete=models.CASCADE, related_name="reviews")
    reviewer = models.CharField(max_length=150)
    verdict = models.CharField(max_length=10, choices=ReviewVerdict)
    # the head that was looked at, and what it changed against its base: see evolution.loop.reviews
    commit = models.CharField(max_length=40)
    diff_digest = models.CharField(max_length=64)
    text = models.TextField(blank=True)
    # the commit that it was given for, where it was carried over to one with an identical diff
    carried_from = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return _("review %s") % self.pk


class ReviewThread(models.Model):
    """A conversation about one line of a proposal's diff."""

    proposal = models.ForeignKey("evolution.Proposal", on_delete=models.CASCADE, related_name="threads")
    # whose file the line stands in: when it was begun, the base on the old side and the head on the new one
    commit = models.CharField(max_length=40)
    path = models.CharField(max_length=300)
    # "old" (the base) or "new" (the head), and the line's number there, from 1; 0 is the file as a whole
    side = models.CharField(max_length=3)
    line = models.PositiveIntegerField()
    # of the line as it was then, so that it can be found again, or shown where it can't
    line_text = models.TextField(blank=True)
    resolved_by = models.CharField(max_length=150, blank=True)
    resolved_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return _("thread %s") % self.pk


class ReviewComment(models.Model):
    """One contribution to a thread."""

    thread = models.ForeignKey(ReviewThread, on_delete=models.CASCADE, related_name="comments")
    author = models.CharField(max_length=150)
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)
    edited_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return _("comment %s") % self.pk


class ConflictResolution(models.Model):
    """How people settled one file's conflict; it holds wherever the same three versions of the file meet again."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="resolutions")
    # of the path and the three versions: see harness_repo.git.conflicts
    key = models.CharField(max_length=64)
    path = models.CharField(max_length=300)
    # null deletes the file
    content = models.TextField(null=True)  # noqa: DJ001  an empty file is not a deleted one
    decided_by = models.CharField(max_length=150)
    # who has looked at it besides, which counts where the harness needs a second reviewer; empty: nobody yet
    confirmed_by = models.CharField(max_length=150, blank=True)
    reason = models.TextField(blank=True)
    decided_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-decided_at"]
        constraints = [models.UniqueConstraint(fields=["harness", "key"], name="resolution_key")]

    def __str__(self) -> str:
        return f"{self.path} {self.key[:8]}"
