"""Stage 3: the diagnoser reads a sample of a cluster beside the harness, and says why they fail.

Only quotes that stand in the cases are kept. Guard, sealed and calibration cases are never shown, nor is
what a right answer would be. Whether the diagnosis is right is for people to say.
"""

from collections.abc import Sequence
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor
from evolution.errors import LoopError
from evolution.loop.asking import ask_model
from evolution.loop.cluster_naming import MODEL, is_named_by_people
from evolution.loop.quotes import quotes_verbatim, turn_of_quote
from evolution.loop.repositories import check_has_agent, open_repository
from evolution.loop.visibility import is_visible_to_models
from evolution.models import Cluster, Diagnosis, FailureCase
from evolution.ports import NamedModel
from evolution.prompts.diagnosis import CaseBrief, DiagnosisOutput, Evidence, diagnosis_request
from evolution.states import CaseState, ClusterState, is_allowed
from evolution.transitions import move, record
from harness_repo.format.harness import is_harness_path, skill_folders_of
from harness_repo.format.textfile import MAX_FILE_BYTES
from harness_repo.git.repository import MAIN

SAMPLE = 12


def sample_members(cluster: Cluster, size: int = SAMPLE) -> list[FailureCase]:
    """The cluster's strongest open members that a model may see."""
    members = FailureCase.objects.filter(cluster=cluster, state=CaseState.OPEN).select_related("dataset_case")
    ordered = members.order_by("-strength", "pk")
    return [case for case in ordered if is_visible_to_models(case)][:size]


def build_brief(case: FailureCase) -> CaseBrief:
    """The failure as a model is shown it: what happened and what was wrong, not what would be right."""
    return CaseBrief(
        id=str(case.pk),
        category=case.category,
        request=case.request,
        context=case.context,
        trajectory=case.trajectory or None,
        reply=case.reply,
        symptom=case.symptom,
        findings=[
            {name: str(value) for name, value in finding.items()}
            for finding in case.findings
            if isinstance(finding, dict)
        ],
    )


def readable_files(files: dict[str, bytes]) -> dict[str, str]:
    """The files of a version that belong to the harness, as text; what lies beside a skill may be none."""
    skill_folders = skill_folders_of(files)
    return {
        path: data.decode("utf-8", "replace")
        for path, data in files.items()
        if is_harness_path(path, skill_folders, files) and b"\0" not in data and len(data) <= MAX_FILE_BYTES
    }


def diagnose_cluster(actor: Actor, cluster: Cluster, model: NamedModel) -> Diagnosis:
    """Make a diagnosis of the cluster on what is live.

    Raises LoopError when no member may be shown, the model can't be asked, or none of its quotes is in the
    cases.
    """
    briefs = [build_brief(case) for case in sample_members(cluster)]
    if not briefs:
        raise LoopError(_("%(cluster)s has no open failure that a model may see") % {"cluster": cluster})
    repository = open_repository(cluster.harness)
    commit = repository.resolve(MAIN)
    check_has_agent(cluster.harness, commit)
    files = repository.files(commit)
    request = diagnosis_request(briefs, readable_files(files), model=model.name)
    answer = ask_model(model, request, DiagnosisOutput)
    evidence = verify_evidence(answer.evidence, briefs)
    if not evidence:
        raise LoopError(
            _("none of the passages that %(model)s quoted is in the cases") % {"model": model.name}
        )
    path = answer.path if is_harness_path(answer.path, skill_folders_of(files), files) else ""
    return _store(actor, cluster, answer, evidence, path=path, commit=commit, model=model.name)


def verify_evidence(evidence: Sequence[Evidence], briefs: Sequence[CaseBrief]) -> list[dict[str, Any]]:
    """The evidence whose quote stands verbatim in the case it names, each once, at the turn where it stands."""
    shown = {brief.id: brief for brief in briefs}
    kept: list[dict[str, Any]] = []
    for item in evidence:
        brief = shown.get(item.case.strip())
        if brief is None or not quotes_verbatim(brief, item.quote):
            continue
        turn = turn_of_quote(brief, item.quote, item.turn)
        entry = {"case": int(brief.id), "turn": turn, "quote": item.quote, "verified": True}
        if entry not in kept:
            kept.append(entry)
    return kept


def _store(
    actor: Actor,
    cluster: Cluster,
    answer: DiagnosisOutput,
    evidence: list[dict[str, Any]],
    *,
    path: str,
    commit: str,
    model: str,
) -> Diagnosis:
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        diagnosis = Diagnosis.objects.create(
            harness_id=cluster.harness_id,
            cluster=cluster,
            part=answer.part,
            path=path,
            hypothesis=answer.hypothesis,
            confidence=answer.confidence,
            evidence=evidence,
            first_wrong_turn=answer.first_wrong_turn,
            changes=answer.changes,
            refuted_by=answer.refuted_by,
            base_commit=commit,
            model=model,
            output=answer.model_dump(),
        )
        record(actor, "diagnosis.created", diagnosis, cluster=cluster.number, model=model)
        if not is_named_by_people(cluster):
            cluster.name, cluster.description = answer.cluster_name[:200], answer.cluster_description
            cluster.named_by = MODEL
            cluster.save(update_fields=["name", "description", "named_by", "updated_at"])
        state = ClusterState(cluster.state)
        if state != ClusterState.IN_PROGRESS and is_allowed(state, ClusterState.DIAGNOSED):
            move(cluster, ClusterState.DIAGNOSED, SYSTEM)
    return diagnosis
