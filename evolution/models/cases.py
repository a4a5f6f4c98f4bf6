"""Failure cases, their vectors, and the clusters they fall into."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
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
    # cosine with the centroid above which a new failure belongs to it; null before the first clustering
    reach = models.FloatField(null=True)
    # who named it: "" for terms, "model" or "people"; people's names stay
    named_by = models.CharField(max_length=8, blank=True, db_default="")
    # people said that both are one; its failures are there, and so are those that would come to it
    merged_into = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="absorbed"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["number"]
        constraints = [models.UniqueConstraint(fields=["harness", "number"], name="cluster_number")]

    def __str__(self) -> str:
        return _("cluster %s") % self.number


class FailureCase(models.Model):
    """Something that went wrong, from an import or an evaluation. Identical ones are counted."""

    # Without an index of its own, as other columns below: those of the class begin with it.
    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="failures", db_index=False)
    # name of the source, or the format or origin, such as tau-bench or evaluation; `source_id` is the record's id there
    source = models.CharField(max_length=64)
    source_id = models.CharField(max_length=200)
    # SHA-256 of what makes two failures the same failure: harness, request, reply and symptom
    fingerprint = models.CharField(max_length=64)
    # SHA-256 of all that came with the record: the same is no update; "" where an older version stored it
    content_digest = models.CharField(max_length=64, blank=True, db_default="")
    # of the text that it was read from, and of the rules that it was masked and judged by: a record that has the same
    # need not be read; "" where that is not known
    raw_digest = models.CharField(max_length=32, blank=True, db_default="")
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
    # the lowest of them, to find and sort by
    score = models.FloatField(null=True, blank=True)
    findings = models.JSONField(default=list)
    # what else the source says of it: {"errors": [text], "checks": [{"name", "passed", "reason"}],
    # "feedback": [{"name", "value", "comment"}]}, as in ports.Record
    signals = models.JSONField(default=dict, db_default={})
    # the agent's turn, from 1, that went wrong first as far as the source says
    blamed_turn = models.PositiveIntegerField(null=True, blank=True)
    harness_commit = models.CharField(max_length=40, blank=True)
    # when it happened, where the source says so
    happened_at = models.DateTimeField(null=True, blank=True)
    # how often each masking rule struck: {"phone": 2}
    masked = models.JSONField(default=dict, db_default={})
    tags = ArrayField(models.CharField(max_length=64), default=list, blank=True, db_default=[])
    assignee = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        db_index=False,
    )
    import_run = models.ForeignKey(
        "evolution.ImportRun",
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="cases",
        db_index=False,
    )
    # where it stood in the import: {"file", "line"}
    place = models.JSONField(default=dict, db_default={})
    # set on failures that an evaluation found
    dataset_case = models.ForeignKey(
        "evolution.DatasetCase", null=True, blank=True, on_delete=models.SET_NULL, related_name="failures"
    )
    evaluation = models.ForeignKey(
        "evolution.Evaluation", null=True, blank=True, on_delete=models.SET_NULL, related_name="failures"
    )
    cluster = models.ForeignKey(
        Cluster, null=True, blank=True, on_delete=models.SET_NULL, related_name="members", db_index=False
    )
    # membership strength in its cluster, 0-1
    strength = models.FloatField(null=True, blank=True)
    # a person put it there, and there it stays
    is_pinned = models.BooleanField(default=False, db_default=False)
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
            models.Index(fields=["harness", "source", "-id"]),
            models.Index(fields=["harness", "category", "-id"]),
            models.Index(fields=["harness", "harness_commit", "-id"]),
            models.Index(fields=["harness", "score"]),
            models.Index(fields=["harness", "created_at"]),
            models.Index(fields=["cluster", "-id"]),
            models.Index(fields=["import_run", "-id"], name="failure_import"),
            # Failures whose text has not been built: those that no clustering has looked at.
            models.Index(
                fields=["harness", "id"], name="failure_unseen", condition=models.Q(embedded_text="")
            ),
            models.Index(
                fields=["assignee", "-id"],
                name="failure_assignee",
                condition=models.Q(assignee__isnull=False),
            ),
            GinIndex(fields=["tags"], name="failure_tags"),
            models.Index(fields=["harness", "-id"], name="failure_tagged", condition=~models.Q(tags=[])),
        ]

    def __str__(self) -> str:
        return _("case %s") % self.pk


class CaseText(models.Model):
    """What is searched of a case, apart from it: moves and clusters do not touch its index."""

    case = models.OneToOneField(FailureCase, primary_key=True, on_delete=models.CASCADE, related_name="text")
    # lower case: request, symptom, reply, what was said, and tool results
    text = models.TextField()
    # hashes of the pieces of the text that it is found by, see loop.search_text; null until loop.search_index comes by
    grams = ArrayField(models.IntegerField(), null=True)

    class Meta:
        indexes = [
            # New entries wait in a list that loop.search_index works off after each of its batches.
            GinIndex(fields=["grams"], name="case_text_grams", gin_pending_list_limit=65_536),
            models.Index(fields=["-case"], name="case_text_waiting", condition=models.Q(grams=None)),
        ]

    def __str__(self) -> str:
        return _("text of case %s") % self.case_id


class CaseNote(models.Model):
    """What a person wrote about a case."""

    case = models.ForeignKey(FailureCase, on_delete=models.CASCADE, related_name="notes")
    author = models.CharField(max_length=150)
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["id"]

    def __str__(self) -> str:
        return _("note of %s") % self.author


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
