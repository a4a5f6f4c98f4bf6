"""What people do with diagnoses: have a cluster diagnosed, amend the diagnosis, or reject it."""

from collections.abc import Sequence
from typing import get_args

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actions.drafted import check_nothing_rests_on
from evolution.actions.reasons import require_reason
from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.jobs import create_job
from evolution.loop.locks import lock_harness
from evolution.models import Cluster, Diagnosis, Job
from evolution.prompts.diagnosis import Part
from evolution.states import ClusterState, DiagnosisState, JobKind
from evolution.tasks.jobs import enqueue_job
from evolution.transitions import move, record
from harness_repo.format.harness import is_harness_path
from harness_repo.git.errors import BadPath
from harness_repo.git.names import check_path

LONGEST_MODEL = 200
# as the column has it
LONGEST_PATH = 300


@transaction.atomic
def start_diagnosis(actor: Actor, cluster: Cluster, model: str = "", *, enqueue: bool = True) -> Job:
    """Have a cluster diagnosed, by a model of another name if one is given.

    A diagnosis that waits or runs already is returned; one that is done is kept beside the new one.
    """
    actor.require(Role.DEVELOPER)
    if cluster.state == ClusterState.IGNORED:
        raise LoopError(_("%(cluster)s is ignored") % {"cluster": cluster})
    name = model.strip()
    if len(name) > LONGEST_MODEL or "\0" in name:
        raise LoopError(_("that is no name of a model"))
    asked = {"model": name} if name else {}
    job, new = create_job(actor, cluster.harness, JobKind.DIAGNOSE, cluster.pk, asked)
    if new and enqueue:
        enqueue_job(job)
    return job


@transaction.atomic
def amend_diagnosis(
    actor: Actor,
    diagnosis: Diagnosis,
    hypothesis: str | None = None,
    changes: Sequence[str] | None = None,
    part: str | None = None,
    *,
    path: str | None = None,
) -> None:
    """Correct what the model said; drafts made from now on follow the correction.

    `part` says what is to blame: with one of the harness it can be drafted, with another it can be handled. `path` is
    the file of it, empty for none. LoopError for a part that there is not, for a path that no harness has, and for a
    diagnosis that is rejected or dealt with.
    """
    actor.require(Role.DEVELOPER)
    diagnosis = Diagnosis.objects.select_for_update().get(pk=diagnosis.pk)
    if diagnosis.state == DiagnosisState.REJECTED:
        raise LoopError(_("%(diagnosis)s is rejected") % {"diagnosis": diagnosis})
    _check_is_not_handled(diagnosis)
    old = _amendable(diagnosis)
    if hypothesis is not None and hypothesis.strip():
        diagnosis.hypothesis = hypothesis.strip()
    if changes is not None:
        diagnosis.changes = [line.strip() for line in changes if line.strip()]
    if part is not None:
        _set_part(diagnosis, part)
    # The old one, sent along with another part, is no wish for it.
    if path is not None and path.strip() != old["path"]:
        diagnosis.path = _check_path(path.strip())
    if old == _amendable(diagnosis):
        return
    diagnosis.amended_by = actor.name
    diagnosis.save(update_fields=["hypothesis", "changes", "part", "path", "amended_by"])
    record(actor, "diagnosis.amended", diagnosis, "", old=old)


def _check_is_not_handled(diagnosis: Diagnosis) -> None:
    if diagnosis.handled_as:
        raise LoopError(_("%(diagnosis)s is dealt with; reopen it first") % {"diagnosis": diagnosis})


def _amendable(diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "hypothesis": diagnosis.hypothesis,
        "changes": diagnosis.changes,
        "part": diagnosis.part,
        "path": diagnosis.path,
    }


def _check_path(path: str) -> str:
    """A path as a harness can have it, or none; LoopError for another."""
    if not path:
        return ""
    try:
        if len(path) <= LONGEST_PATH and is_harness_path(check_path(path)):
            return path
    except BadPath:
        pass
    raise LoopError(_("no harness can have a file %(path)s") % {"path": path[:LONGEST_PATH]})


def _set_part(diagnosis: Diagnosis, part: str) -> None:
    if part not in get_args(Part):
        raise LoopError(_("there is no part %(part)s") % {"part": part})
    if part != diagnosis.part:
        # The file was of the part that was blamed before.
        diagnosis.part, diagnosis.path = part, ""


@transaction.atomic
def reject_diagnosis(actor: Actor, diagnosis: Diagnosis, reason: str) -> None:
    """Say that the diagnosis is wrong, and why; what was drafted for it can't be confirmed, nor go into a step.

    Raises LoopError when that is in a step that is not decided, or people have approved it, and for a diagnosis that
    was dealt with: reopening it takes that back first.
    """
    actor.require(Role.DEVELOPER)
    require_reason(reason)
    lock_harness(diagnosis.harness)
    diagnosis.refresh_from_db()
    _check_is_not_handled(diagnosis)
    check_nothing_rests_on(diagnosis)
    if diagnosis.state != DiagnosisState.REJECTED:
        move(diagnosis, DiagnosisState.REJECTED, actor, reason)
