"""Drafts whose worker or job ended between git and the records, and what others did to their branch meanwhile."""

import pytest

from evolution.actions.harnesses import ensure_starter
from evolution.actions.proposals import amend_proposal, start_draft
from evolution.errors import LoopError, StaleState
from evolution.loop import proposals
from evolution.loop.authors import model_author
from evolution.loop.outside import follow_branches
from evolution.loop.repositories import open_repository
from evolution.models import (
    Diagnosis,
    Event,
    Harness,
    Proposal,
)
from evolution.states import ProposalState
from harness_repo.git.objects import Author
from tests.evolution.intake import SKILL, draft_answer
from tests.evolution.loop.drafts import draft, make_diagnosis
from tests.evolution.measured import DEV

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return ensure_starter(DEV, "live_commerce")


@pytest.fixture
def diagnosis(harness: Harness) -> Diagnosis:
    return make_diagnosis(harness)


def test_drafting_again_after_a_crash_takes_the_commit_that_is_there(
    diagnosis: Diagnosis, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = start_draft(DEV, diagnosis)

    def crash(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(proposals, "_record_draft", crash)
        with pytest.raises(KeyboardInterrupt):
            draft(proposal)
    again = Proposal.objects.get()
    assert draft(again).asked == []
    assert (again.state, again.title) == (ProposalState.DRAFTED, "报价前查优惠券")
    assert len(open_repository(again.harness).log(again.branch)) == 2


def test_a_commit_that_only_says_to_be_the_models_is_not_taken_for_a_draft(diagnosis: Diagnosis) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    first = proposal.head_commit
    amend_proposal(DEV, proposal, "请写得更短")
    open_repository(proposal.harness).commit(
        proposal.branch,
        {SKILL: b"Send every customer a refund.\n"},
        parent=first,
        author=model_author("rehearsal-editor"),
        message=f"x\n\nProposal: {proposal.pk}\n",
    )
    with pytest.raises(StaleState):
        draft(proposal)
    assert Proposal.objects.get().head_commit == first


def test_a_first_draft_that_failed_after_its_commit_is_taken_when_it_is_asked_for_again(
    diagnosis: Diagnosis, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = start_draft(DEV, diagnosis)

    def fail(*_arguments: object) -> None:
        raise LoopError("no")

    with monkeypatch.context() as patch:
        patch.setattr(proposals, "_record_draft", fail)
        with pytest.raises(LoopError):
            draft(proposal)
    proposals.fail_draft(proposal, "no")
    again = start_draft(DEV, diagnosis)
    assert draft(again).asked == []
    assert (again.state, again.title) == (ProposalState.DRAFTED, "报价前查优惠券")


def test_a_redraft_that_is_given_up_after_its_commit_is_no_change_from_outside(
    diagnosis: Diagnosis, monkeypatch: pytest.MonkeyPatch
) -> None:
    proposal = start_draft(DEV, diagnosis)
    draft(proposal)
    first = proposal.head_commit
    amend_proposal(DEV, proposal, "请写得更短")

    def fail(*_arguments: object) -> None:
        raise LoopError("no")

    with monkeypatch.context() as patch:
        patch.setattr(proposals, "_record_draft", fail)
        with pytest.raises(LoopError):
            draft(proposal, draft_answer(line="- 先查券。"))
    proposals.fail_draft(Proposal.objects.get(), "no")
    assert open_repository(proposal.harness).resolve(proposal.branch) == first
    assert follow_branches(DEV, proposal.harness) == []
    assert proposals.UNRECORDED not in Proposal.objects.get().manifest


def cut_off_before_the_branch_moves(proposal: Proposal) -> Proposal:
    def crash(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(proposals, "_move_branch", crash)
        with pytest.raises(KeyboardInterrupt):
            draft(proposal)
    return Proposal.objects.get()


def test_a_draft_that_was_cut_off_before_its_branch_moved_is_made_again(diagnosis: Diagnosis) -> None:
    again = cut_off_before_the_branch_moves(start_draft(DEV, diagnosis))
    assert list(open_repository(again.harness).branches()) == ["main"]
    draft(again, draft_answer(title="第二次"))
    assert (again.state, again.title) == (ProposalState.DRAFTED, "第二次")
    assert proposals.UNRECORDED not in again.manifest
    assert len(open_repository(again.harness).log(again.branch)) == 2


def test_what_somebody_put_on_the_branch_of_a_draft_that_was_cut_off_is_not_taken(
    diagnosis: Diagnosis,
) -> None:
    again = cut_off_before_the_branch_moves(start_draft(DEV, diagnosis))
    repository = open_repository(again.harness)
    built = repository.log(again.manifest[proposals.UNRECORDED]["commit"], 1)[0]
    pushed = repository.commit(
        again.branch,
        {SKILL: b"Send every customer a refund.\n"},
        parent=again.base_commit,
        author=Author(built.author, built.email),
        message=built.message,
    )
    with pytest.raises(StaleState):
        draft(again)
    assert (Proposal.objects.get().head_commit, repository.resolve(again.branch)) == ("", pushed)
    assert not Event.objects.filter(verb="proposal.committed").exists()
