"""A step whose base moved: its proposals are put on what is live, and leave it where they change something else."""

import pytest

from evolution.errors import LoopError
from evolution.loop import steps
from evolution.loop.conflict_resolutions import store_resolution
from evolution.loop.repositories import open_repository
from evolution.loop.step_merges import preview_merge
from evolution.models import Harness, Proposal, Step
from evolution.states import ProposalState, StepState
from harness_repo.git.repository import HarnessRepository
from tests.evolution.measured import DEV, make_harness, make_proposal, move_live, teach

pytestmark = pytest.mark.django_db

ROLE = b"knows: q1\n1\n2\n3\n4\n5\n6\nrule\n"


def make_step() -> tuple[Step, Proposal, Proposal]:
    """A step of one proposal that stands apart, and of one that edits the end of the role."""
    harness = make_harness(role=ROLE)
    apart = make_proposal(harness, b"hi\n", path="hooks/notes.txt")
    edit = make_proposal(harness, ROLE.replace(b"rule", b"other rule"))
    return steps.merge_step(DEV, harness, [apart, edit]), apart, edit


def heads(harness: Harness) -> dict[str, str]:
    return HarnessRepository(open_repository(harness).path).branches()


def test_proposals_with_the_same_diff_stay_in_the_step_on_the_new_base() -> None:
    step, apart, edit = make_step()
    live = move_live(step.harness, {"prompts/role.md": ROLE.replace(b"knows: q1", b"knows: q1 q2")})
    rebuilt = steps.rebuild_step(DEV, step)
    repository = open_repository(step.harness)
    apart.refresh_from_db()
    edit.refresh_from_db()
    assert rebuilt.kept == (apart, edit)
    assert {apart.base_commit, edit.base_commit, step.base_commit} == {live}
    assert repository.changed_files(live, step.candidate_commit) == ["hooks/notes.txt", "prompts/role.md"]
    assert heads(step.harness)[edit.branch] == edit.head_commit


def test_a_proposal_that_changes_something_else_there_leaves_and_waits_for_review() -> None:
    step, apart, edit = make_step()
    live = move_live(step.harness, {"prompts/role.md": ROLE.replace(b"\n6\n", b"\nsix\n")})
    with pytest.raises(LoopError, match="same lines"):
        steps.rebuild_step(DEV, step)
    conflict = preview_merge(step.harness, list(step.proposals.order_by("pk"))).conflict
    assert conflict is not None
    assert (conflict.proposal, conflict.before) == (edit, ())
    settled = ROLE.replace(b"\n6\nrule", b"\nsix\nother rule")
    store_resolution(DEV, [edit], conflict.files[0], settled)
    rebuilt = steps.rebuild_step(DEV, step)
    edit.refresh_from_db()
    apart.refresh_from_db()
    assert (rebuilt.kept, rebuilt.to_review) == ((apart,), (edit,))
    assert (edit.state, edit.step, edit.base_commit) == (ProposalState.DRAFTED, None, live)
    assert open_repository(step.harness).read_file(edit.head_commit, "prompts/role.md") == settled
    assert (apart.state, list(step.merged.all())) == (ProposalState.IN_STEP, [apart])


def test_nothing_moves_when_nothing_would_be_left() -> None:
    step, apart, edit = make_step()
    steps.rebuild_step(DEV, step, without=apart)
    move_live(step.harness, {"prompts/role.md": ROLE.replace(b"\n6\n", b"\nsix\n")})
    conflict = preview_merge(step.harness, [Proposal.objects.select_related("step").get(pk=edit.pk)]).conflict
    assert conflict is not None
    store_resolution(DEV, [edit], conflict.files[0], ROLE.replace(b"\n6\nrule", b"\nsix\nother rule"))
    before = (heads(step.harness), step.base_commit, step.candidate_commit)
    with pytest.raises(LoopError, match="send the step back"):
        steps.rebuild_step(DEV, step)
    step.refresh_from_db()
    edit.refresh_from_db()
    assert (heads(step.harness), step.base_commit, step.candidate_commit) == before
    assert (edit.state, edit.base_commit) == (ProposalState.IN_STEP, step.base_commit)


def test_what_was_cut_off_between_branches_and_records_is_done_again() -> None:
    step, apart, edit = make_step()
    old = {proposal.pk: (proposal.base_commit, proposal.head_commit) for proposal in (apart, edit)}
    was = (step.base_commit, step.candidate_commit)
    live = move_live(step.harness, {"prompts/role.md": ROLE.replace(b"knows: q1", b"knows: q1 q2")})
    steps.rebuild_step(DEV, step)
    moved = heads(step.harness)
    # The branches have moved, and the transaction is gone.
    for pk, (base, head) in old.items():
        Proposal.objects.filter(pk=pk).update(base_commit=base, head_commit=head)
    Step.objects.update(base_commit=was[0], candidate_commit=was[1])
    steps.rebuild_step(DEV, step)
    now = heads(step.harness)
    assert (now[apart.branch], now[edit.branch]) == (moved[apart.branch], moved[edit.branch])
    assert step.base_commit == live


def test_a_confirmed_proposal_is_put_into_a_step() -> None:
    step, apart, edit = make_step()
    more = make_proposal(step.harness, b"more\n", path="hooks/more.txt")
    steps.rebuild_step(DEV, step, adding=more)
    more.refresh_from_db()
    assert (more.state, more.step) == (ProposalState.IN_STEP, step)
    assert list(step.merged.order_by("pk")) == [apart, edit, more]
    assert step.state == StepState.READY
    draft = make_proposal(step.harness, teach(1), path="hooks/x.txt")
    Proposal.objects.filter(pk=draft.pk).update(state=ProposalState.DRAFTED)
    with pytest.raises(LoopError, match="not approved"):
        steps.rebuild_step(DEV, step, adding=draft)
