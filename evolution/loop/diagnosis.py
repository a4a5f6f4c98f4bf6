"""Stage 3: the diagnoser reads a sample of a cluster beside the harness, and says why they fail.

Only quotes that stand in the cases are kept. Guard, sealed and calibration cases are never shown, nor the held-out half
of the dev cases, nor what a right answer would be. Whether a hypothesis is right is for people to say.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import Actor
from evolution.errors import LoopError
from evolution.loop.asking import About, consult
from evolution.loop.blame import find_blame
from evolution.loop.cluster_naming import MODEL, is_named_by_people
from evolution.loop.edits import is_editable
from evolution.loop.failure_text import describe_failure
from evolution.loop.files_in_play import FOR_VERSIONS, ShownFiles, choose_files, compare_versions
from evolution.loop.halves import coming_round
from evolution.loop.quotes import verify_evidence, verify_turns
from evolution.loop.repositories import check_has_agent, open_repository
from evolution.loop.sampling import choose_sample
from evolution.loop.trimming import Trimmed, trim_cases
from evolution.loop.visibility import find_round, known_keys, shown_members
from evolution.models import Cluster, Diagnosis, Exchange, FailureCase, Job
from evolution.ports import NamedModel
from evolution.prompts.diagnosis import (
    NOT_THE_HARNESS,
    CaseBrief,
    DiagnosisOutput,
    Hypothesis,
    diagnosis_request,
)
from evolution.states import CaseState, ClusterState, ExchangePurpose, is_allowed
from evolution.transitions import move, record
from harness_repo.git.repository import MAIN
from harness_repo.runtime.chat import ChatRequest

SAMPLE = 12
# With fewer tokens a case says too little: fewer cases are shown instead.
FEWEST_TOKENS = 800
# Of the budget, this part at most is for the files.
FOR_FILES = 0.5
# Passages that a model is told it has misquoted.
TOLD = 6


@dataclass(frozen=True)
class Question:
    """What the diagnoser is asked, and what it is asked about."""

    request: ChatRequest
    commit: str
    files: Mapping[str, bytes]
    # the cases by id, whole and as they are shown
    whole: Mapping[str, CaseBrief]
    shown: Mapping[str, CaseBrief]
    # see models.Exchange
    account: dict[str, Any]


@dataclass(frozen=True)
class Verified:
    """A hypothesis with what of it stands in the cases."""

    hypothesis: Hypothesis
    evidence: list[dict[str, Any]]
    first_wrong_turns: list[dict[str, int]]


def sample_members(cluster: Cluster, size: int = SAMPLE) -> list[FailureCase]:
    """Members that a model is shown in the coming round: typical ones and some at the edge, none twice."""
    return choose_sample(
        shown_members(cluster),
        size,
        text_of=lambda case: f"{case.title} {describe_failure(case) or case.reply}",
        kind_of=lambda case: (case.category, case.harness_commit),
    )


def shown_keys(diagnosis: Diagnosis) -> list[str]:
    """Keys of the dataset cases that the model was shown for it, as such or as failures that ask the same."""
    if diagnosis.exchange is not None:
        return [str(key) for key in diagnosis.exchange.shown.get("keys", [])]
    quoted = FailureCase.objects.filter(pk__in=[item["case"] for item in diagnosis.evidence])
    return known_keys(diagnosis.harness, list(quoted.select_related("dataset_case")))


def check_draftable(diagnosis: Diagnosis) -> None:
    """Raise LoopError where no change of the harness would help."""
    if diagnosis.part in NOT_THE_HARNESS or diagnosis.handled_as:
        raise LoopError(
            _("%(diagnosis)s does not blame the harness, so there is nothing to draft for it")
            % {"diagnosis": diagnosis}
        )


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


def diagnose_cluster(
    actor: Actor, cluster: Cluster, model: NamedModel, job: Job | None = None
) -> list[Diagnosis]:
    """Have the cluster diagnosed on what is live; returns the hypotheses, the likeliest first.

    A job that was cut off after its answer was stored has it already: nobody is asked again. Raises LoopError when no
    member may be shown, the model can't be asked, or none of its quotes is in the cases after it was told so. What was
    asked is kept then too, so not in a transaction of the caller's.
    """
    if known := _made_by(job):
        return known
    question = build_question(cluster, model.name)
    about = About(
        actor,
        cluster.harness,
        ExchangePurpose.DIAGNOSIS,
        cluster=cluster,
        job=job,
        shown=question.account,
    )
    check = partial(_find_problem, question)
    answer, exchange = consult(model, question.request, DiagnosisOutput, about, check)
    return _store(actor, cluster, answer, question, exchange)


def _made_by(job: Job | None) -> list[Diagnosis]:
    """The hypotheses that a job has brought, the likeliest first."""
    return list(Diagnosis.objects.filter(exchange__job=job).order_by("rank")) if job is not None else []


def build_question(cluster: Cluster, model: str) -> Question:
    """What a model is asked about the cluster; LoopError when no member may be shown, or nobody could run it."""
    harness, budget = cluster.harness, settings.DIAGNOSIS_TOKENS
    repository = open_repository(harness)
    commit = repository.resolve(MAIN)
    check_has_agent(harness, commit)
    cases = sample_members(cluster)
    if not cases:
        raise LoopError(_explain_hidden(cluster))
    snapshot = repository.files(commit)
    files = choose_files(snapshot, cases, int(budget * FOR_FILES))
    versions = compare_versions(repository, commit, cases, list(files.texts), int(budget * FOR_VERSIONS))
    left = budget - files.tokens
    cases = cases[: max(1, left // FEWEST_TOKENS)]
    whole = {str(case.pk): build_brief(case) for case in cases}
    blamed = {str(case.pk): blame.turn for case in cases if (blame := find_blame(case))}
    trimmed = trim_cases(list(whole.values()), left, blamed)
    shown = {each.brief.id: each.brief for each in trimmed}
    request = diagnosis_request(list(shown.values()), files.texts, model=model, versions=versions)
    account = _account(cluster, cases, trimmed, files, versions)
    return Question(request, commit, snapshot, whole, shown, account)


def _account(
    cluster: Cluster,
    cases: list[FailureCase],
    trimmed: list[Trimmed],
    files: ShownFiles,
    versions: list[dict[str, Any]],
) -> dict[str, Any]:
    """What was shown and what was left out, for people."""
    cut = {entry["path"] for entry in files.cuts}
    return {
        "round": coming_round(cluster.harness),
        # of its open members, and how many of them may be shown in this round
        "members": FailureCase.objects.filter(cluster=cluster, state=CaseState.OPEN).count(),
        "allowed": len(shown_members(cluster)),
        "cases": [case.pk for case in cases],
        "keys": known_keys(cluster.harness, cases),
        "files": [path for path in files.texts if path not in cut],
        "versions": versions,
        "cut": [*(entry for each in trimmed for entry in each.cuts), *files.cuts],
        "tokens": files.tokens + sum(each.tokens for each in trimmed),
        "budget": settings.DIAGNOSIS_TOKENS,
    }


def _explain_hidden(cluster: Cluster) -> str:
    number = find_round(cluster)
    if number is None:
        return _("%(cluster)s has no open failure that a model may see") % {"cluster": cluster}
    text = _(
        "all open failures of %(cluster)s are held out of the coming step, so that it is measured on them unseen; "
        "they can be diagnosed for step %(number)d"
    )
    return text % {"cluster": cluster, "number": number}


def _verified(answer: DiagnosisOutput, question: Question) -> Iterator[Verified]:
    """The hypotheses that have a passage of a case to stand on, each once."""
    seen = set()
    for each in answer.hypotheses:
        same = (each.part, each.path, " ".join(each.hypothesis.split()))
        if same in seen:
            continue
        seen.add(same)
        evidence = verify_evidence(each.evidence, question.whole, question.shown)
        if evidence:
            yield Verified(each, evidence, verify_turns(each.first_wrong_turns, question.whole))


def _find_problem(question: Question, answer: DiagnosisOutput) -> str:
    """What is wrong with an answer none of whose hypotheses can be kept; for the model, and for people."""
    if any(_verified(answer, question)):
        return ""
    quotes = [
        f"- case {item.case}: {item.quote[:200]}" for each in answer.hypotheses for item in each.evidence
    ]
    told = (
        "none of the passages that you quote stands in the case that it names; copy them from the cases as they are "
        "shown, word for word, with the case's id:"
    )
    return "\n".join([told, *quotes[:TOLD]])


def _store(
    actor: Actor, cluster: Cluster, answer: DiagnosisOutput, question: Question, exchange: Exchange
) -> list[Diagnosis]:
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        # A worker that was taken for lost may have been first.
        if known := _made_by(exchange.job):
            return known
        made = []
        for rank, verified in enumerate(_verified(answer, question), 1):
            diagnosis = _build(cluster, answer, verified, question)
            diagnosis.rank, diagnosis.exchange, diagnosis.model = rank, exchange, exchange.model
            diagnosis.save()
            record(
                actor,
                "diagnosis.created",
                diagnosis,
                cluster=cluster.number,
                model=exchange.model,
                rank=rank,
                exchange=exchange.pk,
            )
            made.append(diagnosis)
        _settle_cluster(actor, cluster, answer)
    return made


def _build(cluster: Cluster, answer: DiagnosisOutput, verified: Verified, question: Question) -> Diagnosis:
    hypothesis, turns = verified.hypothesis, [item["turn"] for item in verified.first_wrong_turns]
    files = question.files
    is_path = is_editable(hypothesis.path, files)
    return Diagnosis(
        harness_id=cluster.harness_id,
        cluster=cluster,
        category=hypothesis.category,
        part=hypothesis.part,
        path=hypothesis.path if is_path else "",
        hypothesis=hypothesis.hypothesis,
        confidence=hypothesis.confidence,
        evidence=verified.evidence,
        first_wrong_turns=verified.first_wrong_turns,
        # The usual one, the earlier where two are equally frequent.
        first_wrong_turn=max(sorted(turns), key=turns.count, default=None),
        changes=hypothesis.changes,
        refuted_by=hypothesis.refuted_by,
        base_commit=question.commit,
        output={
            "cluster_name": answer.cluster_name,
            "cluster_description": answer.cluster_description,
            **hypothesis.model_dump(),
        },
    )


def _settle_cluster(actor: Actor, cluster: Cluster, answer: DiagnosisOutput) -> None:
    if not is_named_by_people(cluster):
        cluster.name, cluster.description = answer.cluster_name[:200], answer.cluster_description
        cluster.named_by = MODEL
        cluster.save(update_fields=["name", "description", "named_by", "updated_at"])
    state = ClusterState(cluster.state)
    if state != ClusterState.IN_PROGRESS and is_allowed(state, ClusterState.DIAGNOSED):
        move(cluster, ClusterState.DIAGNOSED, actor)
