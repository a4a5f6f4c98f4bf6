"""The states of the loop's records and the moves allowed between them; written by `transitions.move`."""

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class HarnessKind(TextChoices):
    """What a harness drives: the agent that answers, or the judge that scores its answers."""

    AGENT = "agent", _("agent")
    JUDGE = "judge", _("judge")


class Split(TextChoices):
    """What a dataset case may be used for."""

    DEV = "dev", _("dev")
    GUARD = "guard", _("guard")
    SEALED = "sealed", _("sealed")
    CALIBRATION = "calibration", _("calibration")


class CaseState(TextChoices):
    """Where a failure case stands in the inbox."""

    OPEN = "open", _("open")
    IGNORED = "ignored", _("ignored")
    RESOLVED = "resolved", _("resolved")


class ImportState(TextChoices):
    """Where an import stands; an interrupted one goes on where it was when it is started again."""

    # uploaded, and waiting for a person to say how it is to be read
    PREVIEW = "preview", _("preview")
    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    FINISHED = "finished", _("finished")
    FAILED = "failed", _("failed")


class ClusterState(TextChoices):
    """Where a cluster stands, from its first sight to its end."""

    NEW = "new", _("new")
    ESCALATING = "escalating", _("escalating")
    DIAGNOSED = "diagnosed", _("diagnosed")
    IN_PROGRESS = "in_progress", _("in progress")
    RESOLVED = "resolved", _("resolved")
    REGRESSED = "regressed", _("regressed")
    IGNORED = "ignored", _("ignored")


class DiagnosisState(TextChoices):
    """Whether people hold a diagnosis to be right."""

    OPEN = "open", _("open")
    ACCEPTED = "accepted", _("accepted")
    REJECTED = "rejected", _("rejected")


class Handling(TextChoices):
    """What was done about failures for which the harness is not to blame."""

    RELABELLED = "relabelled", _("relabelled")
    IGNORED = "ignored", _("ignored")
    CALIBRATION = "calibration", _("sent to the judge's calibration")


class ExchangePurpose(TextChoices):
    """What a model of the loop was asked for."""

    DIAGNOSIS = "diagnosis", _("diagnosis")
    DRAFT = "draft", _("draft")


class ReviewVerdict(TextChoices):
    """What a reviewer says of a version of a proposal."""

    APPROVED = "approved", _("approved")
    CHANGES = "changes", _("changes requested")
    # an approval that its reviewer took back, or that the base moved away under
    WITHDRAWN = "withdrawn", _("approval withdrawn")


class RoleName(TextChoices):
    """What a person may do: see evolution.actors.Role."""

    VIEWER = "viewer", _("viewer")
    ANNOTATOR = "annotator", _("annotator")
    DEVELOPER = "developer", _("developer")
    OPERATOR = "operator", _("operator")


class ProposalState(TextChoices):
    """Where a proposal stands between draft and release."""

    DRAFTING = "drafting", _("drafting")
    DRAFTED = "drafted", _("waits for review")
    FAILED = "failed", _("draft failed")
    CONFIRMED = "confirmed", _("approved")
    REJECTED = "rejected", _("rejected")
    IN_STEP = "in_step", _("in a step")
    RELEASED = "released", _("released")


class StepState(TextChoices):
    """Where an evolution step stands; the last four are its decision."""

    READY = "ready", _("ready to evaluate")
    EVALUATING = "evaluating", _("evaluating")
    EVALUATED = "evaluated", _("waits for a decision")
    PROMOTED = "promoted", _("promoted")
    REVISED = "revised", _("sent back for revision")
    ROLLED_BACK = "rolled_back", _("rolled back")
    STOPPED = "stopped", _("stopped")


class EvaluationState(TextChoices):
    """Where an evaluation stands; `partial` ended with (case, repeat) pairs that have no score."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    FINISHED = "finished", _("finished")
    PARTIAL = "partial", _("finished with errors")
    CANCELLED = "cancelled", _("cancelled")


class ShardState(TextChoices):
    """Where one shard of an evaluation stands."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")


class JobState(TextChoices):
    """Where a piece of long work stands."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    DONE = "done", _("done")
    FAILED = "failed", _("failed")


class JobKind(TextChoices):
    """The kinds of long work that a page follows."""

    CLUSTER = "cluster", _("clustering")
    DIAGNOSE = "diagnose", _("diagnosis")
    DRAFT = "draft", _("draft")
    IMPORT = "import", _("import")
    ASSIGN = "assign", _("assignment to clusters")
    PUSH = "push", _("push of branches")
    FETCH = "fetch", _("fetch of branches")


class Outcome(TextChoices):
    """The three outcomes of a verdict."""

    PROMOTE = "promote", _("promote")
    REJECT = "reject", _("reject")
    INCONCLUSIVE = "inconclusive", _("inconclusive")


class ReleaseKind(TextChoices):
    """How a commit came to be live."""

    INITIAL = "initial", _("first version")
    PROMOTION = "promotion", _("promotion")
    ROLL_BACK = "roll_back", _("roll back")
    REMOTE = "remote", _("taken from the remote")


Moves = dict[str, frozenset[str]]


def _moves(**table: tuple[str, ...]) -> Moves:
    return {source: frozenset(targets) for source, targets in table.items()}


MOVES: dict[type[TextChoices], Moves] = {
    CaseState: _moves(
        open=("ignored", "resolved"),
        ignored=("open",),
        resolved=("open",),
    ),
    ClusterState: _moves(
        new=("escalating", "diagnosed", "ignored", "resolved"),
        escalating=("diagnosed", "ignored", "resolved"),
        diagnosed=("in_progress", "ignored", "escalating", "resolved"),
        in_progress=("resolved", "diagnosed", "ignored"),
        resolved=("regressed",),
        regressed=("diagnosed", "ignored", "resolved"),
        ignored=("new",),
    ),
    ImportState: _moves(
        preview=("queued",),
        queued=("running", "failed"),
        running=("finished", "failed"),
        # to be gone on with, by a worker or at once by a command
        failed=("queued", "running"),
        finished=(),
    ),
    DiagnosisState: _moves(open=("accepted", "rejected"), accepted=("rejected", "open"), rejected=("open",)),
    ProposalState: _moves(
        drafting=("drafted", "failed"),
        drafted=("confirmed", "rejected", "drafting"),
        failed=("drafting", "rejected"),
        confirmed=("in_step", "rejected", "drafted", "drafting"),
        in_step=("released", "confirmed", "drafted", "rejected"),
        released=(),
        rejected=(),
    ),
    StepState: _moves(
        ready=("evaluating", "revised", "rolled_back", "stopped"),
        evaluating=("evaluated", "ready"),
        evaluated=("promoted", "revised", "rolled_back", "stopped", "evaluating", "ready"),
        promoted=("rolled_back",),
        revised=(),
        # by an operator who makes its release live again
        rolled_back=("promoted",),
        stopped=(),
    ),
    EvaluationState: _moves(
        queued=("running", "finished", "partial", "cancelled"),
        running=("finished", "partial", "cancelled"),
        finished=(),
        partial=("queued", "running", "cancelled"),
        cancelled=("queued",),
    ),
    JobState: _moves(
        queued=("running", "failed", "done"),
        running=("done", "failed", "queued"),
        done=(),
        failed=("queued",),
    ),
}


def is_allowed(source: TextChoices, target: TextChoices) -> bool:
    """Say whether a record in state `source` may move to `target` (both of one enumeration)."""
    return target.value in MOVES[type(source)].get(source.value, frozenset())
