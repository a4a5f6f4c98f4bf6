"""Events in the reader's language; the verb itself stays what the audit trail is searched by."""

from django.db.models import TextChoices
from django.utils.translation import gettext as _

from evolution import states

# The states that "kind.state" verbs end in.
STATES: dict[str, type[TextChoices]] = {
    "failurecase": states.CaseState,
    "cluster": states.ClusterState,
    "importrun": states.ImportState,
    "diagnosis": states.DiagnosisState,
    "proposal": states.ProposalState,
    "step": states.StepState,
    "evaluation": states.EvaluationState,
    "job": states.JobState,
    "release": states.ReleaseKind,
}


def name_kind(kind: str) -> str:
    """What people call a kind of record."""
    names = {
        "bulkaction": _("action on many cases"),
        "savedview": _("saved view"),
        "failurecase": _("case"),
        "cluster": _("cluster"),
        "conflictresolution": _("conflict of files"),
        "dataset": _("dataset"),
        "datasetversion": _("dataset version"),
        "diagnosis": _("diagnosis"),
        "evaluation": _("evaluation"),
        "harness": _("harness"),
        "importrun": _("import"),
        "job": _("job"),
        "maskingrule": _("masking rule"),
        "proposal": _("proposal"),
        "release": _("release"),
        "source": _("source"),
        "step": _("step"),
    }
    return names.get(kind, kind)


def name_deed(verb: str) -> str:
    """What happened to the record: its new state, or the action's own words; unknown verbs as they are."""
    kind, _dot, deed = verb.partition(".")
    labels = dict(STATES[kind].choices) if kind in STATES else {}
    if deed in labels:
        return str(labels[deed])
    deeds = {
        "added_to_dataset": _("added to a dataset"),
        "amended": _("amended"),
        "approvals_carried": _("approvals kept, the diff is the same"),
        "approvals_ended": _("approvals ended, the base has moved"),
        "approval_withdrawn": _("approval taken back"),
        "approved": _("approved"),
        "assigned": _("assigned"),
        "ignore": _("cases ignored"),
        "reopen": _("cases opened again"),
        "tag": _("cases tagged"),
        "untag": _("tag taken from cases"),
        "assign": _("cases assigned"),
        "move": _("cases moved to a cluster"),
        "moved": _("states moved"),
        "undone": _("undone"),
        "saved": _("saved"),
        "deleted": _("deleted"),
        "cases_imported": _("failures imported"),
        "changed": _("changed"),
        "changes_requested": _("changes requested"),
        "comment_edited": _("comment changed"),
        "commented": _("commented"),
        "clustered": _("failures clustered"),
        "committed": _("new commit"),
        "created": _("created"),
        "disabled": _("disabled"),
        "enabled": _("enabled"),
        "absorbed": _("other clusters merged into it"),
        "cases_moved": _("cases moved to a cluster"),
        "cases_put_aside": _("cases put aside"),
        "cases_taken_back": _("cases taken up again"),
        "emptied": _("left without failures"),
        "found": _("found"),
        "handled": _("dealt with, not a fault of the harness"),
        "left_calibration": _("taken back from the judge's calibration"),
        "measured": _("evaluated alone"),
        "merged": _("merged into another cluster"),
        "named": _("named by the model"),
        "regrouped": _("members changed"),
        "sent_to_calibration": _("sent to the judge's calibration"),
        "split": _("split"),
        "failures_assigned": _("new failures assigned"),
        "forgotten": _("opened again"),
        "settled": _("settled"),
        "confirmed": _("approved"),
        "rebased": _("put on the live version"),
        "failures_taken": _("failures taken into the inbox"),
        "imported": _("imported"),
        "noted": _("note added"),
        "rebuilt": _("rebuilt"),
        "rejudged": _("answers judged anew"),
        "renamed": _("renamed"),
        "restored": _("as it ships again"),
        "resumed": _("gone on with"),
        "runner_set": _("another agent set"),
        "stopped": _("evolution stopped"),
        "tagged": _("tags changed"),
        "thread_reopened": _("thread opened again"),
        "thread_resolved": _("thread settled"),
        "token_rotated": _("new token"),
        "role_given": _("role given"),
        "changed_outside": _("changed outside"),
        "outside_acknowledged": _("change from outside seen"),
        "took_theirs": _("history from outside taken"),
        "kept_ours": _("history from outside set aside"),
        "pushed": _("pushed to the remote"),
        "fetched": _("remote fetched"),
        "packed": _("repository packed"),
        "role_removed": _("role taken back"),
        "review_policy_set": _("rule for reviews changed"),
    }
    return deeds.get(deed, deed)
