"""Evaluations: a harness commit on a dataset version, one result per (case, repeat), and verdicts."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext as _

from evolution.models.datasets import DatasetCase, DatasetVersion
from evolution.models.harnesses import Harness
from evolution.states import EvaluationState, Outcome, ShardState


class Evaluation(models.Model):
    """Harness commit x dataset version x model x judge commit x repeats. An error is never a score.

    Runner, faults, live tools and the user's model are part of what is measured too.
    """

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="evaluations")
    # empty for results of a version that nobody named; see `origin`
    commit = models.CharField(max_length=40, blank=True)
    dataset_version = models.ForeignKey(DatasetVersion, on_delete=models.PROTECT, related_name="evaluations")
    # sorted list of split names
    splits = models.JSONField(default=list)
    model = models.CharField(max_length=200)
    judge_commit = models.CharField(max_length=40)
    judge_model = models.CharField(max_length=200)
    # plays the user of conversation cases; empty when there are none
    user_model = models.CharField(max_length=200, blank=True)
    # the harness's runner when it was started, {} for our runtime
    runner = models.JSONField(default=dict)
    # faults that strike tool calls, beside those of the cases
    faults = models.JSONField(default=list)
    # whether tools of the kinds http and mcp could reach the world: see EVALUATION_LIVE_TOOLS
    live_tools = models.BooleanField(default=False)
    repeats = models.PositiveIntegerField(default=1)
    # cases under way at once over all workers; null is EVALUATION_CONCURRENCY
    concurrency = models.PositiveIntegerField(null=True, blank=True)
    # measured with calls of its own: neither an identical evaluation nor answers kept from others are taken
    is_fresh = models.BooleanField(default=False, db_default=False)
    # what it may use: {"calls": n, "tokens": n, "money": x, "seconds": x}, each optional
    budget = models.JSONField(default=dict, db_default={})
    # what its amounts of money are in, the budget's among them: MODEL_CURRENCY when it was made, or the source's
    currency = models.CharField(max_length=10, blank=True, db_default="")
    # the part of the budget that ended it, empty when none did
    stopped_by = models.CharField(max_length=10, blank=True, db_default="")
    # how long workers have been at it, in seconds; pauses are not counted
    running_seconds = models.FloatField(default=0, db_default=0)
    # how often pairs that failed of an outage were queued again by themselves
    retry_rounds = models.PositiveSmallIntegerField(default=0, db_default=0)
    # the version that it is compared with; both are worked on in turns, so that they see the same endpoints
    base = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="candidates"
    )
    # whose answers are judged anew, with another judge; the agent is not run
    answers_from = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.PROTECT, related_name="rejudged"
    )
    # of results made elsewhere: {"format", "file", "digest", ...}; {} when they were made here
    origin = models.JSONField(default=dict, db_default={})
    # what its results came to, once it has ended and they are settled: see evolution.loop.figures
    figures = models.JSONField(default=dict, db_default={})
    state = models.CharField(max_length=10, choices=EvaluationState, default=EvaluationState.QUEUED)
    # (case, repeat) pairs to be made
    total = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    # when a worker was last at it; written by nobody else
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    # when it was resumed; null when it never was
    queued_at = models.DateTimeField(null=True, blank=True)
    # when beat last sent tasks for it, since nobody was at it
    sent_at = models.DateTimeField(null=True, blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["harness", "commit"])]

    def __str__(self) -> str:
        return _("evaluation %s") % self.pk


class EvaluationShard(models.Model):
    """Some pairs of an evaluation, worked on by one process at a time under a lease that can expire."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="shards")
    number = models.PositiveIntegerField()
    # [[case id, repeat], ...]; a third number in a pair says how often it was tried before
    pairs = models.JSONField()
    state = models.CharField(max_length=8, choices=ShardState, default=ShardState.QUEUED)
    # which process holds it, and until when
    holder = models.CharField(max_length=100, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    # how often it was taken, but for orderly interruptions
    attempts = models.PositiveIntegerField(default=0)
    # how often whoever held it never came back; after some of them it is worked on alone
    deaths = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["evaluation", "number"], name="shard_number")]

    def __str__(self) -> str:
        return f"shard {self.number} of {self.evaluation_id}"


class StoredBatch(models.Model):
    """What a worker stored last, written with it: whether a commit that nobody confirmed took place."""

    # a worker: see evolution.limits.holders
    holder = models.CharField(max_length=100, primary_key=True)
    token = models.UUIDField()
    stored_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"batch {self.token} of {self.holder}"


class CaseResult(models.Model):
    """One (case, repeat) of an evaluation: either scores, or an error."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="results")
    case = models.ForeignKey(DatasetCase, on_delete=models.PROTECT, related_name="results")
    # 0-based
    repeat = models.PositiveIntegerField(default=0)
    # 0 or 1; null when there is an error
    accuracy = models.FloatField(null=True, blank=True)
    # 0, 0.5 or 1; null when there is an error
    effectiveness = models.FloatField(null=True, blank=True)
    # a sentence for accuracy and one for effectiveness
    reasons = models.JSONField(default=dict)
    # a list of objects with kind and text
    findings = models.JSONField(default=list)
    reply = models.TextField(blank=True)
    trajectory = models.JSONField(default=dict)
    # how the agent's run ended: as its trajectory has it, or "budget"; empty when there was no run
    run_status = models.CharField(max_length=20, blank=True)
    judge_trajectory = models.JSONField(default=dict)
    prompt_tokens = models.PositiveIntegerField(default=0)
    completion_tokens = models.PositiveIntegerField(default=0)
    # of the agent's run, in milliseconds
    latency_ms = models.FloatField(default=0)
    # the part of prompt_tokens that the provider read from a cache of its own
    cached_tokens = models.PositiveIntegerField(default=0, db_default=0)
    judge_prompt_tokens = models.PositiveIntegerField(default=0, db_default=0)
    judge_completion_tokens = models.PositiveIntegerField(default=0, db_default=0)
    judge_cached_tokens = models.PositiveIntegerField(default=0, db_default=0)
    # model calls by all roles, and those of them that were answered from kept calls
    calls = models.PositiveIntegerField(default=0, db_default=0)
    calls_cached = models.PositiveIntegerField(default=0, db_default=0)
    # milliseconds of each call of the agent's model and of the judge's; a kept call has its first latency
    call_ms = ArrayField(models.FloatField(), default=list, db_default=[])
    judge_call_ms = ArrayField(models.FloatField(), default=list, db_default=[])
    # of all its calls, kept ones included, in its evaluation's currency; null when a price is unknown
    cost = models.DecimalField(max_digits=14, decimal_places=8, null=True, blank=True)
    # how often the pair was tried
    attempts = models.PositiveSmallIntegerField(default=1, db_default=1)
    # empty when there are scores, else evolution.loop.outcomes' word for what failed
    error_kind = models.CharField(max_length=20, blank=True)
    error = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["evaluation", "case", "repeat"], name="one_result_per_case_and_repeat"
            )
        ]

    def __str__(self) -> str:
        return f"result {self.pk}"


class Verdict(models.Model):
    """What two evaluations say about a candidate, with every figure it rests on."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="verdicts")
    base = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="verdicts_as_base")
    candidate = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="verdicts_as_candidate")
    outcome = models.CharField(max_length=12, choices=Outcome)
    # [{"code": ..., "values": {...}}]: see evolution.loop.reasons, which makes sentences of them
    reasons = models.JSONField(default=list)
    # the policy in force, and the figures by metric: see evolution.loop.regressions
    policy = models.JSONField(default=dict)
    figures = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-id"]
        constraints = [models.UniqueConstraint(fields=["base", "candidate"], name="one_verdict_per_pair")]

    def __str__(self) -> str:
        return f"verdict {self.pk}"
