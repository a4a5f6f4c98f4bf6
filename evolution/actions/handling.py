"""What people do where a diagnosis finds the harness not to blame: put aside, have the label or the judge corrected."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actions.clusters import ignore_cluster, reopen_cluster
from evolution.actions.dataset_cases import correct_case
from evolution.actions.drafted import check_nothing_rests_on
from evolution.actions.reasons import require_reason
from evolution.actors import Actor, Role
from evolution.demonstration import CaseData
from evolution.errors import LoopError
from evolution.loop import dataset_cases
from evolution.loop.cluster_states import regress
from evolution.loop.locks import lock_harness
from evolution.loop.visibility import LEFT_CALIBRATION, SENT_TO_CALIBRATION, calibration_key
from evolution.models import Cluster, DatasetCase, Diagnosis, Event, FailureCase
from evolution.prompts.diagnosis import NOT_THE_HARNESS
from evolution.states import CaseState, ClusterState, DiagnosisState, Handling, Split, is_allowed
from evolution.transitions import Told, move, move_all, record

HANDLED = "diagnosis.handled"


@dataclass(frozen=True)
class Correction:
    """What is to be expected of a failure's dataset case instead, and its split if that changes too."""

    case: int
    # facts and forbidden claims, see loop.judging
    expected: dict[str, Any] = field(default_factory=dict)
    split: str = ""


@transaction.atomic
def handle_diagnosis(
    actor: Actor,
    diagnosis: Diagnosis,
    handling: Handling,
    reason: str,
    *,
    case_ids: Sequence[int] = (),
    corrections: Sequence[Correction] = (),
    dataset: str = "",
) -> None:
    """Deal with failures that no change of the harness mends, and say that the diagnosis is right.

    IGNORED puts the cluster aside. RELABELLED gives dataset cases the corrected labels, in a new version under the same
    keys; without `corrections` the cases must have been relabelled already. CALIBRATION takes the cases into the
    dataset for the judge's calibration: a person says that it was wrong on them. The cases are those chosen, else those
    that the diagnosis quotes. Doing it again changes nothing. Raises LoopError where it does not fit, and while a
    proposal for the diagnosis is approved or in a step.
    """
    actor.require(Role.DEVELOPER)
    require_reason(reason)
    lock_harness(diagnosis.harness)
    diagnosis.refresh_from_db()
    if diagnosis.handled_as == handling:
        return
    _check_can_handle(diagnosis)
    check_nothing_rests_on(diagnosis)
    cases = _choose(diagnosis, [*case_ids, *(correction.case for correction in corrections)])
    links: list[dict[str, Any]] = []
    if handling == Handling.IGNORED:
        ignore_cluster(actor, diagnosis.cluster, reason)
    elif handling == Handling.CALIBRATION:
        links = _send_to_calibration(actor, cases, reason, dataset)
    else:
        _relabel(actor, cases, corrections)
    if handling != Handling.IGNORED:
        _put_aside(actor, diagnosis.cluster, cases, reason)
    data = {"handling": handling, "cases": [case.pk for case in cases], "links": links}
    record(actor, HANDLED, diagnosis, reason, **data)
    diagnosis.handled_as = handling
    diagnosis.save(update_fields=["handled_as"])
    if diagnosis.state != DiagnosisState.ACCEPTED:
        move(diagnosis, DiagnosisState.ACCEPTED, actor, reason)


@transaction.atomic
def reopen_diagnosis(actor: Actor, diagnosis: Diagnosis, reason: str) -> None:
    """Take back that a diagnosis was accepted or rejected, and what was done about its cases.

    Cases and cluster that were put aside with it are open again. Dataset versions are immutable: labels stay as they
    were corrected until somebody corrects them again, and calibration cases stay without anybody's word on them.
    """
    actor.require(Role.DEVELOPER)
    require_reason(reason)
    lock_harness(diagnosis.harness)
    diagnosis.refresh_from_db()
    if diagnosis.state == DiagnosisState.OPEN:
        return
    move(diagnosis, DiagnosisState.OPEN, actor, reason)
    if diagnosis.handled_as:
        _undo(actor, diagnosis, reason)
        diagnosis.handled_as = ""
        diagnosis.save(update_fields=["handled_as"])


def _check_can_handle(diagnosis: Diagnosis) -> None:
    if diagnosis.handled_as:
        values = {"diagnosis": diagnosis, "handling": diagnosis.get_handled_as_display()}
        raise LoopError(_("%(diagnosis)s is dealt with (%(handling)s); reopen it first") % values)
    if diagnosis.state == DiagnosisState.REJECTED:
        raise LoopError(_("%(diagnosis)s is rejected") % {"diagnosis": diagnosis})
    if diagnosis.part not in NOT_THE_HARNESS:
        text = _("%(diagnosis)s blames the harness (%(part)s); correct the part first if it is not to blame")
        raise LoopError(text % {"diagnosis": diagnosis, "part": diagnosis.part})


def _choose(diagnosis: Diagnosis, case_ids: Sequence[int]) -> list[FailureCase]:
    """The chosen members of its cluster, else those that it quotes."""
    wanted = set(case_ids) or {item["case"] for item in diagnosis.evidence}
    members = FailureCase.objects.filter(cluster=diagnosis.cluster, pk__in=wanted)
    cases = list(
        members.select_related("harness", "dataset_case__version__dataset", "evaluation").order_by("pk")
    )
    if not cases or (case_ids and len(cases) < len(wanted)):
        raise LoopError(_("choose failures of %(cluster)s") % {"cluster": diagnosis.cluster})
    return cases


def _send_to_calibration(
    actor: Actor, cases: Sequence[FailureCase], reason: str, dataset: str
) -> list[dict[str, Any]]:
    """Make calibration cases of them, with a person's word beside what the judge said; returns how to undo it."""
    by_dataset: dict[str, list[tuple[FailureCase, CaseData]]] = {}
    links: dict[int, dict[str, Any]] = {}
    for case in cases:
        linked, name = case.dataset_case, dataset or _dataset_of(case)
        newest = dataset_cases.find_newest(case)
        expected = newest.expected if newest else {}
        key = calibration_key(case)
        built = dataset_cases.build_case(case, key, Split.CALIBRATION, expected=expected)
        by_dataset.setdefault(name, []).append((case, built))
        before = linked.pk if linked else None
        links[case.pk] = {"case": case.pk, "dataset": name, "key": key, "before": before}
    for name, chosen in by_dataset.items():
        dataset_cases.add_cases(actor, cases[0].harness, name, chosen)
    for case in cases:
        said = {"name": "judge", "value": "wrong", "comment": reason, "by": actor.name}
        case.signals = {**case.signals, "feedback": [*case.signals.get("feedback", []), said]}
        case.save(update_fields=["signals", "updated_at"])
        where = links[case.pk]
        where["said"] = said
        record(actor, SENT_TO_CALIBRATION, case, reason, dataset=where["dataset"], key=where["key"])
    return list(links.values())


def _dataset_of(case: FailureCase) -> str:
    if case.dataset_case is not None:
        return str(case.dataset_case.version.dataset.name)
    newest = case.harness.datasets.order_by("-pk").first()
    return newest.name if newest else case.harness.name


def _relabel(actor: Actor, cases: Sequence[FailureCase], corrections: Sequence[Correction]) -> None:
    by_case = {correction.case: correction for correction in corrections}
    for case in cases:
        linked, correction = case.dataset_case, by_case.get(case.pk)
        if correction is not None:
            correct_case(actor, case, correction.expected, correction.split)
        elif linked is None:
            raise LoopError(_("%(case)s is in no dataset, so there is no label to correct") % {"case": case})
        elif not _is_relabelled(case, linked):
            values = {"case": case, "key": linked.key}
            raise LoopError(_("%(case)s: correct what is expected of %(key)s in the dataset first") % values)


def _is_relabelled(case: FailureCase, linked: DatasetCase) -> bool:
    """Whether the newest version says something else of it than the one that it failed on."""
    now = dataset_cases.find_newest(case)
    failed_on = linked
    if case.evaluation is not None:
        measured = DatasetCase.objects.filter(
            version=case.evaluation.dataset_version_id, key=linked.key
        ).first()
        failed_on = measured or linked
    return now is None or (now.expected, now.split) != (failed_on.expected, failed_on.split)


def _put_aside(actor: Actor, cluster: Cluster, cases: Sequence[FailureCase], reason: str) -> None:
    """The cases are no failures of the harness; a cluster that has no others is resolved."""
    members = FailureCase.objects.filter(cluster=cluster)
    told = Told("cluster.cases_put_aside", cluster, reason, {"cases": [case.pk for case in cases]})
    chosen = members.filter(pk__in=[case.pk for case in cases], state=CaseState.OPEN)
    move_all(chosen, CaseState.IGNORED, actor, told, note=reason)
    cluster.refresh_from_db(fields=["state"])
    is_over = not members.filter(state=CaseState.OPEN).exists()
    if is_over and is_allowed(ClusterState(cluster.state), ClusterState.RESOLVED):
        move(cluster, ClusterState.RESOLVED, actor, reason)


def _undo(actor: Actor, diagnosis: Diagnosis, reason: str) -> None:
    cluster = diagnosis.cluster
    events = Event.objects.filter(verb=HANDLED, target_kind="diagnosis", target_id=diagnosis.pk)
    handled = events.order_by("-pk").first()
    if diagnosis.handled_as == Handling.IGNORED:
        if cluster.state == ClusterState.IGNORED:
            reopen_cluster(actor, cluster, reason)
        return
    data = handled.data if handled else {}
    for link in data.get("links", []):
        _leave_calibration(actor, link, reason)
    note = handled.reason if handled else ""
    aside = FailureCase.objects.filter(pk__in=data.get("cases", []), state=CaseState.IGNORED, note=note)
    told = Told("cluster.cases_taken_back", cluster, reason, {"cases": data.get("cases", [])})
    move_all(aside, CaseState.OPEN, actor, told, note="")
    regress(actor, [cluster.pk])


def _leave_calibration(actor: Actor, link: dict[str, Any], reason: str) -> None:
    case = FailureCase.objects.filter(pk=link["case"]).first()
    if case is not None:
        said = list(case.signals.get("feedback", []))
        # What others say of it stays, under the same name too.
        if link.get("said") in said:
            said.remove(link["said"])
        if _is_tied(case, link):
            case.dataset_case = DatasetCase.objects.filter(pk=link["before"]).first()
        case.signals = {**case.signals, "feedback": said}
        case.save(update_fields=["dataset_case", "signals", "updated_at"])
        # It may have been sent there by another diagnosis, too.
        if not _is_tied(case, link):
            record(actor, LEFT_CALIBRATION, case, reason, dataset=link["dataset"], key=link["key"])


def _is_tied(case: FailureCase, link: dict[str, Any]) -> bool:
    """Whether it is still the calibration case's; somebody may have put it elsewhere since."""
    tied = case.dataset_case
    return tied is not None and tied.key == link["key"] and tied.version.dataset.name == link["dataset"]
