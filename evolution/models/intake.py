"""Where failures come from: sources with their rules, imports and what became of their records, and masking rules."""

from django.db import models
from django.utils.translation import gettext as _

from evolution.models.harnesses import Harness
from evolution.states import ImportState


class Source(models.Model):
    """A place that failures come from, such as a production system: how they are read, and what counts as one."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="sources")
    name = models.SlugField(max_length=64, allow_unicode=True)
    # a format's name, or auto
    format = models.CharField(max_length=32, default="auto")
    # what counts as a failure; see loop.failure_rules
    rule = models.JSONField(default=dict)
    # our field -> theirs, for CSV and the like; see adapters.formats.mapping
    mapping = models.JSONField(default=dict)
    # SHA-256 of the token that it pushes with, "" where there is none; and the token's first characters
    token_digest = models.CharField(max_length=64, blank=True)
    token_hint = models.CharField(max_length=16, blank=True)
    is_enabled = models.BooleanField(default=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    last_seen_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["harness", "name"], name="source_name"),
            models.UniqueConstraint(
                fields=["token_digest"], name="source_token", condition=~models.Q(token_digest="")
            ),
        ]

    def __str__(self) -> str:
        return self.name


class ImportRun(models.Model):
    """One import of one or more files: how far it is, and what became of each record.

    `read` is the sum of new, updated, duplicate, passed and rejected, at any time.
    """

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="imports")
    source = models.ForeignKey(
        Source, null=True, blank=True, on_delete=models.SET_NULL, related_name="imports"
    )
    state = models.CharField(max_length=12, choices=ImportState, default=ImportState.QUEUED)
    # [{"name", "size", "digest", "path"}]; `path` is where an upload waits, below settings.IMPORTS_DIR
    files = models.JSONField(default=list)
    # how it was read: format, mapping, rule and only_failures
    options = models.JSONField(default=dict)
    # SHA-256 over the files' contents and the options: the same import is gone on with
    digest = models.CharField(max_length=64, db_index=True)
    # records that are stored for good: {"file": 0-based, "record": how many of it}
    position = models.JSONField(default=dict)
    # what the files were found to be: {file name: format}
    formats = models.JSONField(default=dict)
    # files that hold no records, and by their names are not expected to: {"count", "names": some of them}
    left_out = models.JSONField(default=dict)
    read = models.PositiveIntegerField(default=0)
    new = models.PositiveIntegerField(default=0)
    updated = models.PositiveIntegerField(default=0)
    duplicate = models.PositiveIntegerField(default=0)
    passed = models.PositiveIntegerField(default=0)
    rejected = models.PositiveIntegerField(default=0)
    # how often each masking rule struck: {"phone": 2}
    masked = models.JSONField(default=dict)
    # why it failed
    message = models.TextField(blank=True)
    created_by = models.CharField(max_length=150)
    created_at = models.DateTimeField(auto_now_add=True)
    heartbeat_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-id"]
        indexes = [models.Index(fields=["harness", "-id"])]

    def __str__(self) -> str:
        return _("import %s") % self.pk

    @property
    def format_names(self) -> list[str]:
        """What its files were found to be, each once."""
        return sorted({name for name in self.formats.values() if name})


class ImportProblem(models.Model):
    """A record that was rejected: where it stands, and why."""

    run = models.ForeignKey(ImportRun, on_delete=models.CASCADE, related_name="problems")
    file = models.CharField(max_length=300)
    # physical line where the record starts, 1-based, and its place among several on one line, else 0
    line = models.PositiveBigIntegerField()
    number = models.PositiveIntegerField(default=0)
    reason = models.TextField()

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class TracePart(models.Model):
    """A span or run that was pushed, masked, until its trace is whole; and for a while after, as late ones come."""

    source = models.ForeignKey(Source, on_delete=models.CASCADE, related_name="parts")
    trace_id = models.CharField(max_length=200)
    span_id = models.CharField(max_length=200)
    # as the format's reader takes it
    data = models.JSONField()
    received_at = models.DateTimeField()
    # null: has to be put together with the rest of its trace
    assembled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["source", "trace_id", "span_id"], name="trace_part_span")
        ]
        indexes = [
            models.Index(
                fields=["received_at"], name="trace_part_waiting", condition=models.Q(assembled_at=None)
            )
        ]

    def __str__(self) -> str:
        return f"{self.trace_id}/{self.span_id}"


class MaskingRule(models.Model):
    """A rule that people made or changed; one with the name of a rule that ships stands in for it."""

    name = models.SlugField(max_length=32, unique=True)
    description = models.CharField(max_length=200, blank=True)
    # regular expression; what its group named `secret` matches is masked, or all of it
    pattern = models.TextField()
    # `[label 1]` stands in for what was masked
    label = models.CharField(max_length=32)
    # opens something: masked in results of evaluations too, where personal data is not
    is_secret = models.BooleanField(default=False)
    is_enabled = models.BooleanField(default=True)
    updated_by = models.CharField(max_length=150)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
