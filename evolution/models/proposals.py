"""From a cluster's diagnosis to a proposal on a branch, and the step that measures proposals together."""

from django.db import models
from django.utils.translation import gettext as _

from evolution.models.cases import Cluster
from evolution.models.harnesses import Harness
from evolution.models.review import Exchange
from evolution.states import DiagnosisState, Handling, ProposalState, StepState


class Diagnosis(models.Model):
    """A root-cause hypothesis about a cluster, with the evidence it rests on."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="diagnoses")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="diagnoses")
    state = models.CharField(max_length=10, choices=DiagnosisState, default=DiagnosisState.OPEN)
    # the question that it is an answer to; None where it was made before these were kept
    exchange = models.ForeignKey(
        Exchange, null=True, blank=True, on_delete=models.SET_NULL, related_name="diagnoses"
    )
    # place among the hypotheses of that answer, from 1, the likeliest first
    rank = models.PositiveSmallIntegerField(default=1)
    # kind of fault: see evolution.prompts.diagnosis
    category = models.CharField(max_length=40, blank=True)
    # what was done where the harness is not to blame; empty otherwise
    handled_as = models.CharField(max_length=12, choices=Handling, blank=True)
    # skill, hook, prompt, tool; or what is no fault of the harness: knowledge, model, judge or label
    part = models.CharField(max_length=12)
    path = models.CharField(max_length=300, blank=True)
    hypothesis = models.TextField()
    # 0-1, as the model said
    confidence = models.FloatField(default=0)
    # a list of objects with case (id), turn, quote, verified
    evidence = models.JSONField(default=list)
    # of the cluster as a whole, and of each case: a list of objects with case (id) and turn
    first_wrong_turns = models.JSONField(default=list)
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
    # keys of the dev cases that the drafter of one of its proposals was shown, or might have been: see
    # evolution.loop.halves; the other dev cases are held out
    held_in = models.JSONField(default=list)
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
    # what it rests on, predicts, and adds: see evolution.loop.manifest
    manifest = models.JSONField(default=dict)
    model = models.CharField(max_length=200, blank=True)
    # keys of the dataset cases that a model was shown on the way to it
    shown_keys = models.JSONField(default=list)
    # how its manifest's predictions came out: see evolution.loop.predictions
    prediction = models.JSONField(default=dict)
    # measured alone, on the base of its branch
    alone_base = models.ForeignKey(
        "evolution.Evaluation", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    alone_candidate = models.ForeignKey(
        "evolution.Evaluation", null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    # head that the remote has of its branch; head that came from outside the workbench and nobody has looked at yet
    pushed_commit = models.CharField(max_length=40, blank=True)
    outside_commit = models.CharField(max_length=40, blank=True)
    # who asked for it; empty where that is not known
    created_by = models.CharField(max_length=150, blank=True)
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
