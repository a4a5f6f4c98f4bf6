"""From a cluster's diagnosis to a proposal on a branch, and the step that measures proposals together."""

from django.db import models
from django.utils.translation import gettext as _

from evolution.models.cases import Cluster
from evolution.models.harnesses import Harness
from evolution.states import DiagnosisState, ProposalState, StepState


class Diagnosis(models.Model):
    """A root-cause hypothesis about a cluster, with the evidence it rests on."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="diagnoses")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="diagnoses")
    state = models.CharField(max_length=10, choices=DiagnosisState, default=DiagnosisState.OPEN)
    # skill, hook, prompt, tool, knowledge, model or judge
    part = models.CharField(max_length=12)
    path = models.CharField(max_length=300, blank=True)
    hypothesis = models.TextField()
    # 0-1, as the model said
    confidence = models.FloatField(default=0)
    # a list of objects with case (id), turn, quote, verified
    evidence = models.JSONField(default=list)
    first_wrong_turn = models.PositiveIntegerField(null=True, blank=True)
    # proposed changes, sentences
    changes = models.JSONField(default=list)
    refuted_by = models.TextField(blank=True)
    base_commit = models.CharField(max_length=40)
    model = models.CharField(max_length=200)
    # the whole answer, as validated
    output = models.JSONField(default=dict)
    # what people changed of it, in words
    amended_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "diagnoses"

    def __str__(self) -> str:
        return _("diagnosis %s") % self.pk


class Step(models.Model):
    """An evolution step: confirmed proposals merged on `step/<n>`, measured against the base, and decided."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="steps")
    number = models.PositiveIntegerField()
    state = models.CharField(max_length=12, choices=StepState, default=StepState.READY)
    base_commit = models.CharField(max_length=40)
    branch = models.CharField(max_length=100)
    candidate_commit = models.CharField(max_length=40)
    base_evaluation = models.ForeignKey(
        "evolution.Evaluation", null=True, blank=True, on_delete=models.SET_NULL, related_name="base_of"
    )
    candidate_evaluation = models.ForeignKey(
        "evolution.Evaluation", null=True, blank=True, on_delete=models.SET_NULL, related_name="candidate_of"
    )
    # what its candidate was made of, kept when the proposals go on into another step
    merged = models.ManyToManyField("evolution.Proposal", related_name="merged_in", blank=True)
    verdict = models.ForeignKey(
        "evolution.Verdict", null=True, blank=True, on_delete=models.SET_NULL, related_name="steps"
    )
    decided_by = models.CharField(max_length=150, blank=True)
    decided_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-number"]
        constraints = [models.UniqueConstraint(fields=["harness", "number"], name="step_number")]

    def __str__(self) -> str:
        return _("step %s") % self.number


class Proposal(models.Model):
    """One hypothesis as an edit on a branch of its own; drafted by the model, amended by people."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="proposals")
    diagnosis = models.ForeignKey(
        Diagnosis, null=True, blank=True, on_delete=models.SET_NULL, related_name="proposals"
    )
    step = models.ForeignKey(Step, null=True, blank=True, on_delete=models.SET_NULL, related_name="proposals")
    state = models.CharField(max_length=10, choices=ProposalState, default=ProposalState.DRAFTING)
    title = models.CharField(max_length=200, blank=True)
    slug = models.SlugField(max_length=60, blank=True)
    summary = models.TextField(blank=True)
    branch = models.CharField(max_length=120, blank=True)
    base_commit = models.CharField(max_length=40)
    head_commit = models.CharField(max_length=40, blank=True)
    # evidence, expected_fixes and at_risk (lists of case ids), expected_effect (text), risks (texts)
    manifest = models.JSONField(default=dict)
    model = models.CharField(max_length=200, blank=True)
    # reviewers' instructions so far: [{"by": name, "text": text, "commit": sha}]
    feedback = models.JSONField(default=list)
    # why the draft failed, or why people rejected it
    reason = models.TextField(blank=True)
    decided_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return _("proposal %s") % self.pk
