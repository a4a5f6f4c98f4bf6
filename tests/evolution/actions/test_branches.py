"""A proposal's branch outside the workbench: pushed, gone on with, rewritten, deleted. All repositories are real."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pytest_django import Settings

from evolution.actions.branches import (
    acknowledge_outside,
    keep_ours,
    push_proposals,
    start_fetch,
    start_push,
    take_theirs,
)
from evolution.actions.proposals import edit_file
from evolution.actions.reviews import approve_proposal
from evolution.actors import SYSTEM, NotAllowed
from evolution.errors import LoopError, StaleState
from evolution.loop.edits import EditRefused
from evolution.loop.outside import Here, Standing, There, follow_branches, read_standing
from evolution.loop.repositories import open_repository
from evolution.models import Event, Job, Proposal
from evolution.states import JobState, ProposalState
from evolution.tasks.branches import fetch_all, follow_all
from evolution.tasks.jobs import perform_job
from harness_repo.git.repository import HarnessRepository
from tests.evolution.actions.branching import (
    EVE,
    ROLE,
    edit,
    fetch,
    make_approved,
    make_remote,
    places,
    rewrite,
    standing,
)
from tests.evolution.measured import ANNA, DEV, VIEWER, teach

pytestmark = pytest.mark.django_db


@pytest.fixture
def proposal() -> Proposal:
    return make_approved()


@pytest.fixture
def there(proposal: Proposal, tmp_path: Path, settings: Settings) -> HarnessRepository:
    return make_remote(proposal, tmp_path / "there.git", settings)


def test_a_branch_is_pushed_by_a_job(proposal: Proposal, there: HarnessRepository) -> None:
    assert places(proposal) == (Here.SAME, There.UNPUSHED)
    for _time in range(2):
        job = start_push(DEV, proposal, enqueue=False)
        perform_job(job.pk)
    assert there.resolve(proposal.branch) == proposal.head_commit
    assert places(proposal) == (Here.SAME, There.SAME)
    assert proposal.pushed_commit == proposal.head_commit
    assert Event.objects.get(verb="proposal.pushed").data["commit"] == proposal.head_commit


def test_without_a_remote_nothing_is_begun(proposal: Proposal) -> None:
    for action in (start_push, lambda actor, proposal: start_fetch(actor, proposal.harness)):
        with pytest.raises(LoopError, match="no remote"):
            action(DEV, proposal)
        with pytest.raises(NotAllowed):
            action(VIEWER, proposal)
    assert not Job.objects.exists()
    assert read_standing(proposal).there == There.NO_REMOTE


def test_what_others_add_there_is_taken_and_marked(proposal: Proposal, there: HarnessRepository) -> None:
    push_proposals(DEV, proposal.harness)
    new = edit(there, proposal, teach(1, 4))
    assert fetch(proposal.harness).result["moved"] == [proposal.pk]
    proposal.refresh_from_db()
    assert (proposal.head_commit, proposal.outside_commit) == (new, new)
    assert open_repository(proposal.harness).resolve(proposal.branch) == new
    # What was approved is another diff.
    assert proposal.state == ProposalState.DRAFTED
    told = Event.objects.get(verb="proposal.changed_outside")
    assert (told.actor, told.data["by"], told.data["commit"]) == ("dev", "Eve", new)
    fetch(proposal.harness)
    assert Event.objects.filter(verb="proposal.changed_outside").count() == 1


def test_the_rounds_find_both_kinds_of_changes(proposal: Proposal, there: HarnessRepository) -> None:
    push_proposals(DEV, proposal.harness)
    new = edit(open_repository(proposal.harness), proposal, teach(1, 4))
    follow_all()
    assert places(proposal) == (Here.SAME, There.BEHIND)
    assert (proposal.head_commit, proposal.outside_commit) == (new, new)
    push_proposals(DEV, proposal.harness)
    newer = edit(there, proposal, teach(1, 4, 5))
    fetch_all()
    assert places(proposal) == (Here.SAME, There.SAME)
    assert proposal.head_commit == newer
    before = Event.objects.count()
    fetch_all()
    follow_all()
    assert Event.objects.count() == before


def test_a_remote_that_is_down_troubles_nobody_else(
    proposal: Proposal, tmp_path: Path, settings: Settings
) -> None:
    settings.HARNESS_REMOTES = {"shop": {"url": str(tmp_path / "nowhere.git")}}
    fetch_all()
    job = fetch(proposal.harness)
    assert (job.state, "fetch failed" in job.message) == (JobState.FAILED, True)


def test_the_mark_goes_when_somebody_has_looked(proposal: Proposal) -> None:
    old = proposal.head_commit
    edit(open_repository(proposal.harness), proposal, teach(1, 4))
    follow_branches(SYSTEM, proposal.harness)
    proposal.refresh_from_db()
    with pytest.raises(StaleState):
        acknowledge_outside(DEV, proposal, old)
    with pytest.raises(NotAllowed):
        acknowledge_outside(VIEWER, proposal, proposal.head_commit)
    for _time in range(2):
        acknowledge_outside(DEV, proposal, proposal.head_commit)
    assert (Proposal.objects.get().outside_commit, Proposal.objects.get().state) == ("", "drafted")
    assert Event.objects.filter(verb="proposal.outside_acknowledged").count() == 1


def test_an_approval_is_a_look_too(proposal: Proposal) -> None:
    edit(open_repository(proposal.harness), proposal, teach(1, 4))
    follow_branches(SYSTEM, proposal.harness)
    proposal.refresh_from_db()
    approve_proposal(ANNA, proposal)
    assert (Proposal.objects.get().outside_commit, Proposal.objects.get().state) == ("", "confirmed")


def test_a_branch_that_took_main_in_has_its_base_there(proposal: Proposal) -> None:
    repository = open_repository(proposal.harness)
    main = repository.commit("main", {"prompts/request.md": b"x"}, parent="main", author=EVE, message="m")
    edit(repository, proposal, teach(1, 4))
    repository.merge(proposal.branch, proposal.branch, ["main"], author=EVE, message="take main")
    follow_branches(SYSTEM, proposal.harness)
    proposal.refresh_from_db()
    assert proposal.base_commit == main
    assert repository.changed_files(proposal.base_commit, proposal.head_commit) == [ROLE]


def test_approvals_stay_when_only_the_message_is_new(proposal: Proposal) -> None:
    repository = open_repository(proposal.harness)
    edit(repository, proposal, teach(1, 4))
    edit(repository, proposal, repository.read_file(proposal.head_commit, ROLE))
    follow_branches(SYSTEM, proposal.harness)
    proposal.refresh_from_db()
    assert (proposal.state, bool(proposal.outside_commit)) == (ProposalState.CONFIRMED, True)


@pytest.mark.parametrize("state", ["drafting", "in_step", "rejected", "released"])
def test_only_what_is_under_review_follows(proposal: Proposal, state: str) -> None:
    Proposal.objects.filter(pk=proposal.pk).update(state=state)
    edit(open_repository(proposal.harness), proposal, teach(1, 4))
    assert follow_branches(SYSTEM, proposal.harness) == []
    assert Proposal.objects.get().head_commit == proposal.head_commit


def diverge(proposal: Proposal, there: HarnessRepository) -> tuple[str, str]:
    """Both sides go on from what was pushed; returns ours and theirs."""
    push_proposals(DEV, proposal.harness)
    theirs = edit(there, proposal, teach(1, 3))
    ours = edit(open_repository(proposal.harness), proposal, teach(1, 4))
    fetch(proposal.harness)
    return ours, theirs


def test_two_histories_are_left_for_people(proposal: Proposal, there: HarnessRepository) -> None:
    ours, theirs = diverge(proposal, there)
    assert standing(proposal) == Standing(Here.SAME, There.DIVERGED, ours, theirs, "team")
    with pytest.raises(LoopError, match="other commits"):
        push_proposals(DEV, proposal.harness)
    assert there.resolve(proposal.branch) == theirs


def test_theirs_can_be_taken(proposal: Proposal, there: HarnessRepository) -> None:
    ours, theirs = diverge(proposal, there)
    with pytest.raises(StaleState):
        take_theirs(DEV, proposal, proposal.base_commit)
    for _time in range(2):
        take_theirs(DEV, proposal, theirs)
    repository = open_repository(proposal.harness)
    assert places(proposal) == (Here.SAME, There.SAME)
    assert (proposal.head_commit, proposal.outside_commit) == (theirs, theirs)
    assert repository.resolve(f"replaced/{proposal.pk}-{ours[:12]}") == ours
    assert Event.objects.filter(verb="proposal.took_theirs").count() == 1


def test_ours_can_be_kept_and_pushed_without_force(proposal: Proposal, there: HarnessRepository) -> None:
    ours, theirs = diverge(proposal, there)
    approve_proposal(ANNA, Proposal.objects.get())
    keep_ours(DEV, proposal, theirs)
    assert places(proposal) == (Here.SAME, There.BEHIND)
    repository = open_repository(proposal.harness)
    assert repository.files(proposal.head_commit) == repository.files(ours)
    assert repository.is_ancestor(theirs, proposal.head_commit)
    # What was approved is the same diff.
    assert proposal.state == ProposalState.CONFIRMED
    push_proposals(DEV, proposal.harness)
    assert there.resolve(proposal.branch) == proposal.head_commit


def test_a_rewritten_branch_is_not_followed_nor_approved(proposal: Proposal) -> None:
    new = rewrite(open_repository(proposal.harness), proposal, teach(9))
    assert follow_branches(SYSTEM, proposal.harness) == []
    assert standing(proposal).here == Here.REWRITTEN
    Proposal.objects.filter(pk=proposal.pk).update(state="drafted")
    with pytest.raises(LoopError, match="rewritten"):
        approve_proposal(ANNA, Proposal.objects.get())
    take_theirs(DEV, proposal, new)
    assert (Proposal.objects.get().head_commit, standing(proposal).here) == (new, Here.SAME)


def test_a_rewritten_branch_is_not_edited_by_hand(proposal: Proposal) -> None:
    old = proposal.head_commit
    new = rewrite(open_repository(proposal.harness), proposal, teach(9))
    with pytest.raises(LoopError, match="rewritten"):
        edit_file(DEV, proposal, ROLE, "knows: q9 q8\n", new)
    assert Proposal.objects.get().head_commit == old
    assert open_repository(proposal.harness).resolve(proposal.branch) == new


def test_an_edit_by_hand_marks_what_others_had_pushed(proposal: Proposal) -> None:
    new = edit(open_repository(proposal.harness), proposal, teach(1, 9))
    with pytest.raises(StaleState):
        edit_file(DEV, Proposal.objects.get(), ROLE, "knows: q1\n", proposal.head_commit)
    found = Proposal.objects.get()
    assert (found.head_commit, found.outside_commit, found.state) == (new, new, ProposalState.DRAFTED)
    edit_file(DEV, found, ROLE, "knows: q1\n", new)
    assert Proposal.objects.get().outside_commit == new
    assert Event.objects.filter(verb="proposal.changed_outside").count() == 1


Break = Callable[[HarnessRepository, Proposal], str]


def delete(repository: HarnessRepository, proposal: Proposal) -> str:
    repository.delete_branch(proposal.branch)
    return ""


@pytest.mark.parametrize(
    "break_it", [lambda repository, proposal: rewrite(repository, proposal, b"x"), delete]
)
def test_our_branch_can_be_put_back(proposal: Proposal, break_it: Break) -> None:
    repository, head = open_repository(proposal.harness), proposal.head_commit
    broken = break_it(repository, proposal)
    assert standing(proposal).is_open
    keep_ours(DEV, proposal, broken)
    assert repository.resolve(proposal.branch) == head
    assert standing(proposal).here == Here.SAME
    assert proposal.state == ProposalState.CONFIRMED


def test_a_branch_that_is_gone_or_merged_there_is_said(proposal: Proposal, there: HarnessRepository) -> None:
    push_proposals(DEV, proposal.harness)
    there.delete_branch(proposal.branch)
    fetch(proposal.harness)
    assert places(proposal) == (Here.SAME, There.DELETED)
    push_proposals(DEV, proposal.harness)
    assert places(proposal) == (Here.SAME, There.SAME)
    there.merge("main", "main", [proposal.branch], author=EVE, message="merged by the team")
    there.delete_branch(proposal.branch)
    fetch(proposal.harness)
    assert places(proposal) == (Here.SAME, There.MERGED)


def test_a_branch_with_what_no_edit_may_do_is_taken_but_not_approved(
    proposal: Proposal, there: HarnessRepository
) -> None:
    push_proposals(DEV, proposal.harness)
    edit(there, proposal, b"on: push\n", ".github/workflows/run.yml")
    fetch(proposal.harness)
    with pytest.raises(EditRefused, match=r"run\.yml is not a path inside"):
        approve_proposal(DEV, Proposal.objects.get())


def test_what_moved_since_is_not_pushed(proposal: Proposal, there: HarnessRepository) -> None:
    edit(open_repository(proposal.harness), proposal, teach(1, 4))
    with pytest.raises(LoopError, match="look at it before"):
        push_proposals(DEV, proposal.harness)
    with pytest.raises(LoopError, match="no proposal 0"):
        push_proposals(DEV, proposal.harness, [0])
    Proposal.objects.update(state="rejected")
    with pytest.raises(LoopError, match="nothing of it to push"):
        push_proposals(DEV, proposal.harness, [proposal.pk])
