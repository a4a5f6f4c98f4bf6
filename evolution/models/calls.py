"""Model calls: answers that are kept, what an evaluation has used, and limits that all processes share."""

from django.db import models

from evolution.models.evaluations import Evaluation


class ModelCall(models.Model):
    """The answer to one model call, kept by what was asked, so that nobody pays for the same call twice."""

    # of what was asked: see evolution.loop.call_keys
    key = models.UUIDField(primary_key=True)
    role = models.CharField(max_length=12)
    model = models.CharField(max_length=200)
    # the fields of harness_repo.runtime.chat.ChatReply
    reply = models.JSONField()
    created_at = models.DateTimeField(auto_now_add=True)
    # to within a day
    used_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["used_at"])]

    def __str__(self) -> str:
        return f"{self.role} call {self.key}"


class EvaluationUsage(models.Model):
    """What an evaluation has used of a role's model so far; counted as calls are stored, whatever kills a worker."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="usage")
    role = models.CharField(max_length=12)
    model = models.CharField(max_length=200)
    # calls that were made and answered; calls that were answered from kept ones; tries that failed
    made = models.PositiveBigIntegerField(default=0)
    cached = models.PositiveBigIntegerField(default=0)
    failed = models.PositiveBigIntegerField(default=0)
    # of the calls made; cached_tokens is the part of prompt_tokens that the provider read from its own cache
    prompt_tokens = models.PositiveBigIntegerField(default=0)
    completion_tokens = models.PositiveBigIntegerField(default=0)
    cached_tokens = models.PositiveBigIntegerField(default=0)
    # of the calls made, in the currency of MODEL_PRICES; `unpriced` calls are not in it, as no price was known
    cost = models.DecimalField(max_digits=18, decimal_places=8, default=0)
    unpriced = models.PositiveBigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "role"], name="usage_role")]

    def __str__(self) -> str:
        return f"{self.role} in evaluation {self.evaluation_id}"


class BudgetHold(models.Model):
    """What one process's calls under way, and those not stored yet, take of an evaluation's budget, by role.

    One of a process that is gone stays: its calls were made, and nobody knows what came of them.
    """

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="holds")
    # a name of evolution.limits.holders
    holder = models.CharField(max_length=100)
    role = models.CharField(max_length=12)
    # tokens and money as they are expected, until they are known
    calls = models.BigIntegerField(default=0)
    tokens = models.BigIntegerField(default=0)
    money = models.DecimalField(max_digits=18, decimal_places=8, default=0)
    lease_until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["evaluation", "holder", "role"], name="hold_role")]

    def __str__(self) -> str:
        return f"{self.calls} {self.role} calls of {self.holder} in evaluation {self.evaluation_id}"


class SharedLimit(models.Model):
    """What all processes together may have under way at an endpoint or in an evaluation."""

    # such as "endpoint:<digest>" or "evaluation:<id>"
    name = models.CharField(primary_key=True, max_length=100)
    # what is left of the requests and tokens per minute, at `filled_at`; tokens may be owed
    requests_left = models.FloatField(default=0)
    tokens_left = models.FloatField(default=0)
    filled_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name


class LimitShare(models.Model):
    """The part of a limit that one process holds until its lease ends."""

    limit = models.ForeignKey(SharedLimit, on_delete=models.CASCADE, related_name="shares")
    # a process: see evolution.limits.holders
    holder = models.CharField(max_length=100)
    # how many it would have under way, may have, and has
    wanted = models.PositiveIntegerField(default=0)
    granted = models.PositiveIntegerField(default=0)
    taken = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["limit", "holder"], name="share_holder")]

    def __str__(self) -> str:
        return f"{self.granted} of {self.limit_id} for {self.holder}"
