from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from evolution.actions import conflicts, steps
from evolution.actions.reviews import approve_proposal
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import LoopError, StaleState
from evolution.loop.authors import author_of
from evolution.loop.confirmations import digest_settled
from evolution.loop.conflict_resolutions import Decision, HunkChoice, Side, known_resolutions
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import approvals, find_authors
from evolution.loop.step_merges import preview_merge
from evolution.models import ConflictResolution, Event, Harness, Proposal
from evolution.states import ProposalState
from tests.evolution.measured import ANNA, DEV, VIEWER, make_harness, make_proposal, move_live, teach

pytestmark = pytest.mark.django_db

ALICE, CAROL = Actor("alice", Role.DEVELOPER), Actor("carol", Role.DEVELOPER)
BOTH = Decision(text="knows: q1 q2 q3\n", reason="both of them")


def make_clash() -> tuple[Harness, list[Proposal]]:
    harness = make_harness()
    return harness, [make_proposal(harness, teach(1)), make_proposal(harness, teach(2))]


def key_of(proposals: list[Proposal]) -> str:
    conflict = preview_merge(proposals[0].harness, proposals).conflict
    assert conflict is not None
    return conflict.files[0].key


def settle(proposals: list[Proposal], decision: Decision = BOTH) -> ConflictResolution:
    return conflicts.settle_conflict(DEV, proposals, key_of(proposals), decision)


def read(harness: Harness, ref: str, path: str = "prompts/role.md") -> bytes:
    return open_repository(harness).read_file(ref, path)


def test_what_was_settled_lets_a_step_start() -> None:
    harness, proposals = make_clash()
    settle(proposals)
    step = steps.start_step(DEV, harness, proposals)
    event = Event.objects.get(verb="conflict.settled")
    assert read(harness, step.candidate_commit) == b"knows: q1 q2 q3\n"
    assert (event.actor, event.reason, event.data["path"]) == ("dev", "both of them", "prompts/role.md")


def test_it_holds_when_a_proposal_is_taken_out_and_put_in_again() -> None:
    harness, proposals = make_clash()
    settle(proposals)
    step = steps.start_step(DEV, harness, proposals)
    steps.take_out(DEV, step, proposals[1])
    alone = read(harness, step.candidate_commit)
    steps.put_in(DEV, step, proposals[1])
    assert (alone, read(harness, step.candidate_commit)) == (teach(1), b"knows: q1 q2 q3\n")
    assert step.proposals.count() == 2
    commit = step.candidate_commit
    steps.put_in(DEV, step, proposals[1])
    assert step.candidate_commit == commit


def test_it_is_decided_otherwise_and_forgotten() -> None:
    harness, proposals = make_clash()
    first = settle(proposals)
    conflicts.settle_conflict(ANNA, proposals, first.key, Decision(hunks=(HunkChoice(Side.OURS),)))
    assert known_resolutions(harness, proposals)[first.key] == teach(1)
    assert harness.resolutions.get().decided_by == "anna"
    for _time in ("once", "again"):
        conflicts.forget_conflict(DEV, harness, first.pk)
    assert len(known_resolutions(harness, proposals)) == 0
    with pytest.raises(LoopError, match="same lines"):
        steps.start_step(DEV, harness, proposals)


def test_a_conflict_that_is_there_no_longer_is_not_settled() -> None:
    _harness, proposals = make_clash()
    with pytest.raises(StaleState):
        conflicts.settle_conflict(DEV, proposals, "0" * 64, BOTH)
    with pytest.raises(LoopError):
        conflicts.settle_conflict(DEV, [], "0" * 64, BOTH)


@pytest.mark.parametrize("text", ["{{ unclosed\n", "a\0b", "x" * 200_001])
def test_what_can_be_no_file_of_a_harness_is_refused(text: str) -> None:
    harness, proposals = make_clash()
    with pytest.raises(LoopError):
        settle(proposals, Decision(text=text))
    assert not harness.resolutions.exists()


def test_files_that_fit_by_line_and_not_together_make_no_step() -> None:
    harness = make_harness()
    skill = b"---\nname: same\ndescription: d\nmetadata: {kind: reply}\n---\nBe kind.\n"
    proposals = [
        make_proposal(harness, skill.replace(b"kind.", word), path=f"skills/{word.decode()}/SKILL.md")
        for word in (b"one", b"two")
    ]
    own = [open_repository(harness).files(proposal.head_commit) for proposal in proposals]
    assert own[0].keys() != own[1].keys()
    with pytest.raises(LoopError, match="put together, it would have problems"):
        steps.start_step(DEV, harness, proposals)
    assert "step/1" not in open_repository(harness).branches()


def test_a_proposal_put_on_what_is_live_keeps_approvals_of_the_same_diff() -> None:
    harness = make_harness()
    proposal = make_proposal(harness, b"hi\n", path="hooks/notes.txt")
    Proposal.objects.update(state=ProposalState.DRAFTED)
    proposal.refresh_from_db()
    approve_proposal(ANNA, proposal)
    old, live = proposal.head_commit, move_live(harness, {"prompts/role.md": teach(7)})
    rebased = conflicts.rebase_proposal(DEV, proposal)
    proposal.refresh_from_db()
    assert rebased.is_kept
    assert (proposal.state, proposal.base_commit) == (ProposalState.CONFIRMED, live)
    assert open_repository(harness).branches()[proposal.branch] == proposal.head_commit != old
    assert [(review.reviewer, review.carried_from) for review in approvals(proposal)] == [("anna", old)]
    assert conflicts.rebase_proposal(DEV, proposal).commit == proposal.head_commit


def test_a_proposal_in_conflict_with_what_is_live_waits_till_that_is_settled() -> None:
    harness = make_harness()
    proposal = make_proposal(harness, teach(1))
    before = proposal.head_commit
    move_live(harness, {"prompts/role.md": teach(7)})
    with pytest.raises(LoopError, match=r"prompts/role\.md"):
        conflicts.rebase_proposal(DEV, proposal)
    assert open_repository(harness).branches()[proposal.branch] == before
    settle([proposal], Decision(text="knows: q1 q7\n"))
    rebased = conflicts.rebase_proposal(ANNA, proposal)
    newest = open_repository(harness).log(rebased.commit, 1)[0]
    proposal.refresh_from_db()
    assert (rebased.is_kept, proposal.state) == (False, ProposalState.DRAFTED)
    assert read(harness, proposal.head_commit) == b"knows: q1 q7\n"
    assert (newest.author, newest.parents[0]) == ("dev", before)


def test_a_repeat_takes_the_branch_that_a_dead_rebase_moved() -> None:
    harness = make_harness()
    proposal = make_proposal(harness, b"hi\n", path="hooks/notes.txt")
    old = (proposal.base_commit, proposal.head_commit)
    move_live(harness, {"prompts/role.md": teach(7)})
    commit = conflicts.rebase_proposal(DEV, proposal).commit
    Proposal.objects.update(base_commit=old[0], head_commit=old[1])
    again = move_live(harness, {"prompts/role.md": teach(8)})
    rebased = conflicts.rebase_proposal(DEV, proposal)
    repository = open_repository(harness)
    assert repository.log(rebased.commit, 1)[0].parents == (commit, again)
    assert repository.changed_files(again, rebased.commit) == ["hooks/notes.txt"]


def test_a_branch_that_somebody_moved_is_not_rebased() -> None:
    harness = make_harness()
    proposal = make_proposal(harness, b"hi\n", path="hooks/notes.txt")
    repository = open_repository(harness)
    edit, head = {"hooks/notes.txt": b"ho\n"}, proposal.head_commit
    repository.commit(proposal.branch, edit, parent=head, author=author_of(ANNA), message="x")
    move_live(harness, {"prompts/role.md": teach(7)})
    with pytest.raises(StaleState):
        conflicts.rebase_proposal(DEV, proposal)


@pytest.mark.parametrize(
    "action",
    [
        lambda ours: conflicts.settle_conflict(VIEWER, ours, "0" * 64, BOTH),
        lambda ours: conflicts.confirm_conflict(VIEWER, ours, "0" * 64),
        lambda ours: conflicts.forget_conflict(VIEWER, ours[0].harness, 1),
        lambda ours: conflicts.rebase_proposal(VIEWER, ours[0]),
        lambda ours: conflicts.send_back(VIEWER, ours[0], "x"),
    ],
)
def test_viewers_decide_nothing(action: Callable[[list[Proposal]], object]) -> None:
    _harness, proposals = make_clash()
    with pytest.raises(NotAllowed):
        action(proposals)


def test_what_is_sent_back_is_drafted_anew_on_what_is_live() -> None:
    harness, proposals = make_clash()
    in_step = steps.start_step(DEV, harness, proposals[:1])
    proposals[0].refresh_from_db()
    with pytest.raises(LoopError, match="take it out"):
        conflicts.send_back(DEV, proposals[0], "x")
    with pytest.raises(LoopError, match="say what to change"):
        conflicts.send_back(DEV, proposals[1], " ")
    move_live(harness, {"prompts/role.md": teach(7)})
    conflicts.send_back(DEV, proposals[1], "")
    proposals[1].refresh_from_db()
    assert proposals[1].state == ProposalState.DRAFTING
    assert in_step.proposals.count() == 1


def make_guarded_clash() -> tuple[Harness, list[Proposal], ConflictResolution]:
    """Proposals by dev that clash; alice has settled it, and the harness needs a second reviewer."""
    harness, proposals = make_clash()
    Harness.objects.filter(pk=harness.pk).update(needs_second_reviewer=True)
    for proposal in proposals:
        approve_proposal(ANNA, proposal)
    settled = conflicts.settle_conflict(ALICE, proposals, key_of(proposals), BOTH)
    return harness, proposals, settled


def test_with_a_second_reviewer_a_settled_conflict_waits_for_somebody_elses_word() -> None:
    harness, proposals, settled = make_guarded_clash()
    with pytest.raises(LoopError, match="same lines"):
        steps.start_step(ALICE, harness, proposals)
    for _time in ("once", "again"):
        conflicts.confirm_conflict(CAROL, proposals, settled.key, digest_settled(settled))
    step = steps.start_step(ALICE, harness, proposals)
    assert read(harness, step.candidate_commit) == b"knows: q1 q2 q3\n"
    assert harness.resolutions.get().confirmed_by == "carol"
    assert Event.objects.get(verb="conflict.confirmed").actor == "carol"


@pytest.mark.parametrize("actor", [ALICE, DEV], ids=["who settled it", "an author"])
def test_whoever_wrote_it_does_not_confirm_it(actor: Actor) -> None:
    harness, proposals, settled = make_guarded_clash()
    with pytest.raises(LoopError, match="settled by alice"):
        conflicts.confirm_conflict(actor, proposals, settled.key)
    ConflictResolution.objects.update(confirmed_by=actor.name)
    with pytest.raises(LoopError, match="same lines"):
        steps.start_step(ALICE, harness, proposals)


def test_the_author_of_a_proposal_that_leaves_the_file_alone_may_confirm() -> None:
    harness, proposals, settled = make_guarded_clash()
    other = make_proposal(harness, b"hi\n", path="prompts/notes.md")
    Proposal.objects.filter(pk=other.pk).update(created_by="carol")
    conflicts.confirm_conflict(CAROL, [*proposals, Proposal.objects.get(pk=other.pk)], settled.key)
    assert steps.start_step(ALICE, harness, proposals).candidate_commit


def test_a_confirmation_is_of_one_text() -> None:
    harness, proposals, settled = make_guarded_clash()
    conflicts.confirm_conflict(CAROL, proposals, settled.key)
    conflicts.settle_conflict(ALICE, proposals, settled.key, Decision(text="knows: something worse\n"))
    assert harness.resolutions.get().confirmed_by == ""
    with pytest.raises(StaleState):
        conflicts.confirm_conflict(CAROL, proposals, settled.key, digest_settled(settled))
    with pytest.raises(LoopError, match="same lines"):
        steps.start_step(ALICE, harness, proposals)


def test_a_proposal_is_not_rebased_by_what_nobody_else_has_confirmed() -> None:
    harness = make_harness()
    Harness.objects.filter(pk=harness.pk).update(needs_second_reviewer=True)
    proposal = make_proposal(harness, teach(1))
    move_live(harness, {"prompts/role.md": teach(7)})
    settled = conflicts.settle_conflict(ALICE, [proposal], key_of([proposal]), BOTH)
    with pytest.raises(LoopError, match=r"prompts/role\.md"):
        conflicts.rebase_proposal(ALICE, proposal)
    conflicts.confirm_conflict(CAROL, [proposal], settled.key)
    assert not conflicts.rebase_proposal(ALICE, proposal).is_kept


def test_everybody_who_settled_a_part_of_a_rebase_is_its_author() -> None:
    harness = make_harness()
    files = ("prompts/role.md", "prompts/request.md")
    proposal = make_proposal(harness, teach(1))
    repository = open_repository(harness)
    edit = {files[1]: b"mine {{ danmaku[0].text }}\n"}
    proposal.head_commit = repository.commit(
        proposal.branch, edit, parent=proposal.head_commit, author=author_of(DEV), message="more"
    )
    Proposal.objects.filter(pk=proposal.pk).update(head_commit=proposal.head_commit)
    move_live(harness, {files[0]: teach(7), files[1]: b"theirs {{ danmaku[0].text }}\n"})
    found = preview_merge(harness, [proposal]).conflict
    keys = {file.path: file.key for file in found.files} if found else {}
    for actor, path in ((ALICE, files[0]), (CAROL, files[1])):
        text = f"by {actor.name} {{{{ danmaku[0].text }}}}\n"
        conflicts.settle_conflict(actor, [proposal], keys[path], Decision(text=text))

    conflicts.rebase_proposal(ANNA, proposal)

    assert {"alice", "carol"} <= find_authors(Proposal.objects.get())
    assert "anna" not in find_authors(Proposal.objects.get())


def test_the_second_account_of_whoever_settled_it_does_not_confirm_it() -> None:
    harness, proposals, settled = make_guarded_clash()
    User.objects.create_user("alice", "alice@example.org")
    User.objects.create_user("al", "ALICE@example.org")
    with pytest.raises(LoopError, match="settled by alice"):
        conflicts.confirm_conflict(Actor("al", Role.DEVELOPER, "ALICE@example.org"), proposals, settled.key)
    assert harness.resolutions.get().confirmed_by == ""
