"""A diagnosis to draft from, and the draft of scripted answers, for tests."""

from evolution.loop.proposals import draft_proposal
from evolution.models import (
    Diagnosis,
    Harness,
    Proposal,
)
from evolution.ports import NamedModel
from evolution.states import ClusterState
from tests.evolution.intake import Answers, diagnosis_answer, draft_answer, make_cluster


def make_diagnosis(harness: Harness) -> Diagnosis:
    cluster = make_cluster(harness, 7, ("3号链接多少钱？",), state=ClusterState.DIAGNOSED)
    case = cluster.members.get()
    evidence = [{"case": case.pk, "turn": 0, "quote": case.title, "verified": True}]
    answer = diagnosis_answer({"case": str(case.pk), "turn": 0, "quote": case.title})
    told = answer["hypotheses"][0]
    fields = {name: told[name] for name in ("part", "path", "hypothesis", "changes")}
    return Diagnosis.objects.create(
        harness=harness,
        cluster=cluster,
        output=answer,
        evidence=evidence,
        model="m",
        base_commit="0" * 40,
        **fields,
    )


def draft(proposal: Proposal, *answers: object) -> Answers:
    model = Answers(*(answers or (draft_answer(),)))  # type: ignore[arg-type]
    draft_proposal(proposal, NamedModel(model, "rehearsal-editor"), lambda *_: None)
    return model
