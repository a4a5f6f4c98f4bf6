import pytest

from evolution.actions.diagnosis import reject_diagnosis
from evolution.actions.harnesses import ensure_starter
from evolution.actions.proposals import (
    amend_proposal,
    edit_file,
    redraft_proposal,
    reject_proposal,
    start_draft,
)
from evolution.actions.reviews import approve_proposal
from evolution.actors import NotAllowed
from evolution.errors import LoopError, MoveRefused, StaleState
from evolution.loop.edits import EditRefused
from evolution.loop.repositories import open_repository
from evolution.loop.steps import merge_step
from evolution.models import Cluster, Diagnosis, Event, Job, Proposal
from evolution.states import ClusterState, JobState, ProposalState
from harness_repo.git.objects import Author
from tests.evolution.intake import SKILL
from tests.evolution.loop.drafts import draft, make_diagnosis
from tests.evolution.measured import ANNA, DEV, VIEWER
from tests.evolution.racing import run_at_once

pytestmark = pytest.mark.django_db


@pytest.fixture
def proposal() -> Proposal:
    made = start_draft(DEV, make_diagnosis(ensure_starter(DEV, "live_commerce")))
    draft(made)
    return made


def skill(proposal: Proposal) -> str:
    return open_repository(proposal.harness).read_file(proposal.branch, SKILL).decode()


def test_two_clicks_draft_one_proposal() -> None:
    diagnosis = make_diagnosis(ensure_starter(DEV, "live_commerce"))
    assert start_draft(DEV, diagnosis) == start_draft(DEV, diagnosis)
    assert (Proposal.objects.count(), Job.objects.count()) == (1, 1)


def test_a_rejected_diagnosis_is_not_drafted() -> None:
    diagnosis = make_diagnosis(ensure_starter(DEV, "live_commerce"))
    reject_diagnosis(DEV, diagnosis, "no")
    with pytest.raises(LoopError, match="rejected"):
        start_draft(DEV, diagnosis)


def test_confirming_is_recorded_once(proposal: Proposal) -> None:
    for _ in range(2):
        approve_proposal(ANNA, proposal, "看过了")
    stored = Proposal.objects.get()
    assert (stored.state, stored.decided_by) == (ProposalState.CONFIRMED, "anna")
    assert Event.objects.get(verb="proposal.confirmed").reason == "看过了"


def test_confirming_refuses_a_branch_that_moved_and_shows_it_next(proposal: Proposal) -> None:
    repository = open_repository(proposal.harness)
    head = repository.commit(
        proposal.branch,
        {SKILL: skill(proposal).encode() + b"- more\n"},
        parent=proposal.head_commit,
        expected_head=proposal.head_commit,
        author=Author("x", "x@y"),
        message="m",
    )
    with pytest.raises(StaleState):
        approve_proposal(ANNA, proposal)
    assert Proposal.objects.get().head_commit == head
    approve_proposal(ANNA, Proposal.objects.get())
    assert Proposal.objects.get().state == ProposalState.CONFIRMED


def test_a_proposal_that_adds_a_problem_can_not_be_confirmed(proposal: Proposal) -> None:
    repository = open_repository(proposal.harness)
    proposal.head_commit = repository.commit(
        proposal.branch,
        {"skills/new/SKILL.md": b"no front matter\n"},
        parent=proposal.head_commit,
        expected_head=proposal.head_commit,
        author=Author("x", "x@y"),
        message="m",
    )
    proposal.save()
    with pytest.raises(EditRefused, match="skills/new"):
        approve_proposal(ANNA, proposal)


def test_an_edit_by_hand_is_the_persons_commit(proposal: Proposal) -> None:
    approve_proposal(ANNA, proposal)
    sha = edit_file(ANNA, proposal, SKILL, skill(proposal) + "- 手写\r\n", proposal.head_commit)
    commit = open_repository(proposal.harness).log(proposal.branch)[0]
    stored = Proposal.objects.get()
    assert (commit.sha, commit.author) == (sha, "anna")
    assert (stored.head_commit, stored.state) == (sha, ProposalState.DRAFTED)
    assert skill(proposal).endswith("- 手写\n")


def test_an_edit_of_an_old_version_is_refused(proposal: Proposal) -> None:
    old = proposal.head_commit
    edit_file(ANNA, proposal, SKILL, skill(proposal) + "- a\n", old)
    with pytest.raises(StaleState):
        edit_file(DEV, Proposal.objects.get(), SKILL, skill(proposal) + "- b\n", old)


@pytest.mark.parametrize("path", ["README.md", "../main", "-rf"])
def test_an_edit_outside_the_harness_is_refused(proposal: Proposal, path: str) -> None:
    with pytest.raises(EditRefused):
        edit_file(ANNA, proposal, path, "x\n", proposal.head_commit)


def test_rejecting_frees_the_cluster(proposal: Proposal) -> None:
    for _ in range(2):
        reject_proposal(DEV, proposal, "太宽")
    stored = Proposal.objects.get()
    assert (stored.state, stored.reason) == (ProposalState.REJECTED, "太宽")
    assert Cluster.objects.get().state == ClusterState.DIAGNOSED
    with pytest.raises(MoveRefused):
        approve_proposal(DEV, stored)


def test_amending_asks_the_editor_again(proposal: Proposal) -> None:
    job = amend_proposal(DEV, proposal, "短一点")
    assert (job.target_id, proposal.state) == (proposal.pk, ProposalState.DRAFTING)
    assert proposal.feedback[0]["text"] == "短一点"
    with pytest.raises(LoopError):
        amend_proposal(DEV, proposal, " ")


def test_second_instruction_while_the_editor_drafts_is_refused(proposal: Proposal) -> None:
    for _ in range(2):
        amend_proposal(DEV, proposal, "短一点")
    with pytest.raises(LoopError, match="at work"):
        amend_proposal(ANNA, Proposal.objects.get(), "长一点")
    assert [item["text"] for item in Proposal.objects.get().feedback] == ["短一点"]


def test_confirming_what_was_edited_meanwhile_is_refused(proposal: Proposal) -> None:
    stale, reviewed = Proposal.objects.get(), proposal.head_commit
    edit_file(DEV, proposal, SKILL, skill(proposal) + "- a\n", reviewed)
    with pytest.raises(StaleState):
        approve_proposal(ANNA, stale)
    with pytest.raises(StaleState):
        approve_proposal(ANNA, Proposal.objects.get(), reviewed=reviewed)
    assert Proposal.objects.get().state == ProposalState.DRAFTED


def test_editing_what_was_confirmed_meanwhile_asks_for_another_review(proposal: Proposal) -> None:
    stale = Proposal.objects.get()
    approve_proposal(ANNA, proposal)
    head = edit_file(DEV, stale, SKILL, skill(proposal) + "- a\n", stale.head_commit)
    stored = Proposal.objects.get()
    assert (stored.state, stored.head_commit) == (ProposalState.DRAFTED, head)


@pytest.mark.django_db(transaction=True)
def test_confirming_and_editing_at_once_never_confirms_an_unseen_head(proposal: Proposal) -> None:
    reviewed, content = proposal.head_commit, skill(proposal) + "- a\n"
    one, two = Proposal.objects.get(), Proposal.objects.get()
    run_at_once(
        lambda: approve_proposal(ANNA, one),
        lambda: edit_file(DEV, two, SKILL, content, reviewed),
    )
    stored = Proposal.objects.get()
    assert (stored.state, stored.head_commit == reviewed) == (ProposalState.DRAFTED, False)


def test_proposal_in_a_step_is_not_rejected(proposal: Proposal) -> None:
    approve_proposal(ANNA, proposal)
    merge_step(DEV, proposal.harness, [Proposal.objects.get()])
    with pytest.raises(LoopError, match="take it out of the step"):
        reject_proposal(DEV, proposal, "dangerous")
    assert Proposal.objects.get().state == ProposalState.IN_STEP


def test_proposal_of_a_rejected_diagnosis_is_not_confirmed(proposal: Proposal) -> None:
    assert proposal.diagnosis is not None
    reject_diagnosis(DEV, proposal.diagnosis, "wrong")
    with pytest.raises(LoopError, match="diagnosis behind"):
        approve_proposal(ANNA, proposal)
    assert Proposal.objects.get().state == ProposalState.DRAFTED


def test_rejecting_needs_a_reason(proposal: Proposal) -> None:
    with pytest.raises(LoopError, match="say why"):
        reject_proposal(DEV, proposal, "")
    assert Proposal.objects.get().state == ProposalState.DRAFTED


def test_viewers_decide_nothing(proposal: Proposal) -> None:
    for act in (
        lambda: approve_proposal(VIEWER, proposal),
        lambda: reject_proposal(VIEWER, proposal, ""),
        lambda: amend_proposal(VIEWER, proposal, "x"),
        lambda: edit_file(VIEWER, proposal, SKILL, "x", proposal.head_commit),
    ):
        with pytest.raises(NotAllowed):
            act()


def test_another_model_drafts_an_alternative_beside_the_first(proposal: Proposal) -> None:
    diagnosis = proposal.diagnosis
    assert diagnosis is not None
    other = start_draft(ANNA, diagnosis, "other-model")
    assert (other == proposal, other.model, other.created_by) == (False, "other-model", "anna")
    assert start_draft(DEV, diagnosis, "other-model") == other
    assert start_draft(DEV, diagnosis, "rehearsal-editor") == proposal
    assert Job.objects.get(target_id=other.pk).parameters == {"model": "other-model"}


def test_the_model_that_was_asked_for_drafts_again_too(proposal: Proposal) -> None:
    Job.objects.update(parameters={"model": "other-model"}, state=JobState.DONE)
    assert amend_proposal(DEV, proposal, "短一点").parameters == {"model": "other-model"}


@pytest.mark.parametrize(
    "fields", [{"part": "judge"}, {"part": "model"}, {"part": "knowledge"}, {"handled_as": "ignored"}]
)
def test_what_is_no_fault_of_the_harness_is_not_drafted(fields: dict[str, str]) -> None:
    diagnosis = make_diagnosis(ensure_starter(DEV, "live_commerce"))
    Diagnosis.objects.update(**fields)
    with pytest.raises(LoopError, match="does not blame the harness"):
        start_draft(DEV, diagnosis)
    assert not Proposal.objects.exists()


def test_drafting_anew_needs_a_live_version_that_moved(proposal: Proposal) -> None:
    with pytest.raises(LoopError, match="amend it instead"):
        redraft_proposal(DEV, proposal)
    move_main(proposal)
    jobs = {redraft_proposal(DEV, proposal, "再来").pk for _ in range(2)}
    stored = Proposal.objects.get()
    assert (len(jobs), stored.state, len(stored.feedback)) == (1, ProposalState.DRAFTING, 1)
    assert stored.feedback[0]["onto"] == open_repository(proposal.harness).resolve("main")


def test_proposal_in_a_step_is_not_drafted_anew(proposal: Proposal) -> None:
    approve_proposal(ANNA, proposal)
    merge_step(DEV, proposal.harness, [Proposal.objects.get()])
    move_main(proposal)
    with pytest.raises(LoopError, match="can't be drafted anew"):
        redraft_proposal(DEV, proposal)
    with pytest.raises(NotAllowed):
        redraft_proposal(VIEWER, proposal)


def move_main(proposal: Proposal) -> None:
    repository = open_repository(proposal.harness)
    text = repository.read_file("main", SKILL) + b"- released\n"
    main = repository.resolve("main")
    repository.commit("main", {SKILL: text}, parent=main, author=Author("x", "x@y"), message="m")
