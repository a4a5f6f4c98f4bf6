"""Harnesses and what was released of them."""

from django.conf import settings
from django.db import models

from evolution.states import HarnessKind, ReleaseKind, RoleName


class Harness(models.Model):
    """A named git repository of kind agent or judge; its branch `main` is what is live."""

    name = models.SlugField(max_length=64, unique=True)
    kind = models.CharField(max_length=8, choices=HarnessKind)
    title = models.CharField(max_length=200, blank=True)
    # bare repository, relative to settings.REPOSITORIES_DIR
    path = models.CharField(max_length=200)
    # the judge that scores this agent; empty on judges
    judge = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="judged")
    # verdict policy: see evolution.loop.regressions.Policy
    policy = models.JSONField(default=dict, blank=True)
    # the agent that is measured, {} for our runtime: see evolution.loop.runners; an operator sets it
    runner = models.JSONField(default=dict, blank=True)
    # whether whoever approves a proposal has to be somebody else than its author; an operator sets it
    needs_second_reviewer = models.BooleanField(default=False)
    # set when people stopped the evolution; a new step clears it
    stopped_at = models.DateTimeField(null=True, blank=True)
    # the version that stopping selected
    selected_commit = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class Release(models.Model):
    """A commit that became live, bound to everything that was measured of it."""

    harness = models.ForeignKey(Harness, on_delete=models.PROTECT, related_name="releases")
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=10, choices=ReleaseKind)
    commit = models.CharField(max_length=40)
    tag = models.CharField(max_length=100)
    step = models.ForeignKey(
        "evolution.Step", null=True, blank=True, on_delete=models.PROTECT, related_name="releases"
    )
    evaluation = models.ForeignKey(
        "evolution.Evaluation", null=True, blank=True, on_delete=models.PROTECT, related_name="releases"
    )
    dataset_version = models.ForeignKey(
        "evolution.DatasetVersion", null=True, blank=True, on_delete=models.PROTECT
    )
    model = models.CharField(max_length=200, blank=True)
    judge_commit = models.CharField(max_length=40, blank=True)
    actor = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["harness", "number"], name="release_number")]

    def __str__(self) -> str:
        return self.tag


class HarnessRole(models.Model):
    """A person's role for one harness, in place of the one that they have elsewhere."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="roles")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="harness_roles")
    role = models.CharField(max_length=10, choices=RoleName)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["harness", "user"], name="harness_role")]

    def __str__(self) -> str:
        return f"{self.user} {self.role} of {self.harness}"
