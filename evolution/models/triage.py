"""What people keep of their triage: views of the inbox, and what they did to many cases at once."""

from django.db import models
from django.utils.translation import gettext as _

from evolution.models.cases import FailureCase
from evolution.models.harnesses import Harness


class SavedView(models.Model):
    """A filter of the inbox under a name, of one person or of all."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="views")
    owner = models.CharField(max_length=150)
    name = models.CharField(max_length=80)
    # the list's query, without the page: "state=open&tag=price"
    query = models.TextField(blank=True)
    is_shared = models.BooleanField(default=False)
    # what its owner's inbox opens with; one per owner
    is_default = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["harness", "owner", "name"], name="saved_view_name")]

    def __str__(self) -> str:
        return self.name


class BulkAction(models.Model):
    """Something that was done to many cases at once, and can be undone."""

    harness = models.ForeignKey(Harness, on_delete=models.CASCADE, related_name="bulk_actions")
    actor = models.CharField(max_length=150)
    # ignore, reopen, tag, untag, assign, move
    verb = models.CharField(max_length=16)
    parameters = models.JSONField(default=dict)
    # cases that were changed
    count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(auto_now_add=True)
    undone_at = models.DateTimeField(null=True, blank=True)
    undone_by = models.CharField(max_length=150, blank=True)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return _("%(verb)s of %(count)d cases") % {"verb": self.verb, "count": self.count}


class BulkChange(models.Model):
    """What a case was before a bulk action."""

    # Found by the constraint below: an index of the action alone would lead the planner into going through all changes
    # for each of them.
    action = models.ForeignKey(BulkAction, on_delete=models.CASCADE, related_name="changes", db_index=False)
    case = models.ForeignKey(FailureCase, on_delete=models.CASCADE, related_name="+")
    # the fields that were changed
    before = models.JSONField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["action", "case"], name="bulk_change_case")]

    def __str__(self) -> str:
        return f"{self.action_id}: {self.case_id}"
