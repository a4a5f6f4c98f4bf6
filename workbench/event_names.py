"""Events in the reader's language; the verb itself stays what the audit trail is searched by."""

from django.db.models import TextChoices
from django.utils.translation import gettext as _

from evolution import states

# The states that "kind.state" verbs end in.
STATES: dict[str, type[TextChoices]] = {
    "failurecase": states.CaseState,
    "cluster": states.ClusterState,
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
        "failurecase": _("case"),
        "cluster": _("cluster"),
        "dataset": _("dataset"),
        "datasetversion": _("dataset version"),
        "diagnosis": _("diagnosis"),
        "evaluation": _("evaluation"),
        "harness": _("harness"),
        "job": _("job"),
        "proposal": _("proposal"),
        "release": _("release"),
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
        "amended": _("amended"),
        "cases_imported": _("failures imported"),
        "clustered": _("failures clustered"),
        "committed": _("new commit"),
        "created": _("created"),
        "failures_taken": _("failures taken into the inbox"),
        "imported": _("imported"),
        "rebuilt": _("rebuilt"),
        "rejudged": _("answers judged anew"),
        "renamed": _("renamed"),
        "runner_set": _("another agent set"),
        "stopped": _("evolution stopped"),
    }
    return deeds.get(deed, deed)
