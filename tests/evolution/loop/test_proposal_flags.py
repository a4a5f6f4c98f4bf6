import pytest

from evolution.loop.flags import FlagKind
from evolution.loop.proposal_flags import flag_proposal, list_shown_cases, tell_case
from evolution.models import Diagnosis, Exchange, Harness, Proposal
from evolution.states import ExchangePurpose
from tests.evolution.intake import make_cluster, make_failure
from tests.evolution.measured import make_harness, make_proposal

pytestmark = pytest.mark.django_db

PASSAGE = "小熊保温杯券后价五十九元，现在下单还送一支杯刷和一块杯垫"


@pytest.fixture
def harness() -> Harness:
    return make_harness()


def make_exchange(proposal: Proposal, *cases: int) -> None:
    Exchange.objects.create(
        harness=proposal.harness,
        purpose=ExchangePurpose.DRAFT,
        proposal=proposal,
        model="m",
        shown={"cases": [str(case) for case in cases]},
    )


def test_a_passage_of_a_case_is_flagged_once_the_drafter_was_shown_it(harness: Harness) -> None:
    case = make_failure(harness, PASSAGE)
    proposal = make_proposal(harness, f"knows: q1 q2\n- {PASSAGE}\n".encode())
    assert flag_proposal(proposal) == []
    make_exchange(proposal, case.pk)
    assert [(flag.line, flag.kind) for flag in flag_proposal(proposal)] == [(2, FlagKind.FROM_TRANSCRIPT)]


def test_what_is_quoted_as_evidence_was_shown(harness: Harness) -> None:
    cluster = make_cluster(harness, 1, (PASSAGE,))
    case = cluster.members.get()
    evidence = [{"case": case.pk, "turn": 0, "quote": PASSAGE, "verified": True}, {"case": "?"}]
    proposal = make_proposal(harness, b"x\n")
    proposal.diagnosis = Diagnosis.objects.create(
        harness=harness, cluster=cluster, part="skill", hypothesis="h", model="m", evidence=evidence
    )
    assert list_shown_cases(proposal) == [case]


def test_a_branch_that_moved_is_looked_at_anew(harness: Harness) -> None:
    proposal = make_proposal(harness, b"knows: q1\xe2\x80\x8b q2\n")
    assert [flag.kind for flag in flag_proposal(proposal)] == [FlagKind.HIDDEN]
    proposal.head_commit = proposal.base_commit
    assert flag_proposal(proposal) == []
    proposal.head_commit = ""
    assert flag_proposal(proposal) == []


def test_a_case_is_told_without_the_prompt(harness: Harness) -> None:
    messages = [
        {"role": "system", "content": "the rules"},
        {"role": "tool", "content": '{"note": "\\u5c0f\\u718a", "price": 59}'},
    ]
    case = make_failure(harness, "几点发货", trajectory={"messages": messages}, reply="明天", symptom="错了")
    told = tell_case(case)
    assert "the rules" not in told
    assert all(text in told for text in ("几点发货", "小熊", "59", "明天", "错了"))
