"""A proposal's branch outside the workbench: pushed, gone on with, rewritten, deleted. All repositories are real."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError
from pytest_django import Settings

from evolution.actions.branches import (
    acknowledge_outside,
    keep_ours,
    push_proposals,
    start_fetch,
    start_push,
    take_theirs,
)
from evolution.actions.conflicts import rebase_proposal
from evolution.actions.proposals import edit_file
from evolution.actions.reviews import approve_proposal
from evolution.actions.steps import rebuild_step, start_step
from evolution.actors import SYSTEM, Actor, NotAllowed
from evolution.errors import LoopError, StaleState
from evolution.loop import outside, rebasing
from evolution.loop.edits import EditRefused
from evolution.loop.locks import lock_record
from evolution.loop.outside import Here, Standing, There, follow_branches, read_standing
from evolution.loop.proposals import rebuild_manifest
from evolution.loop.repositories import open_repository
from evolution.loop.version_size import LARGEST_FILE, MOST_FILES
from evolution.models import Event, Harness, Job, Proposal
from evolution.states import JobState, ProposalState
from evolution.tasks.branches import fetch_all, follow_all
from evolution.tasks.jobs import perform_job
from harness_repo.git.objects import Author
from harness_repo.git.remotes import import_repository
from harness_repo.git.repository import HarnessRepository
from tests.evolution.measured import ANNA, DEV, VIEWER, make_harness, make_proposal, move_live, teach

pytestmark = pytest.mark.django_db
EVE = Author("Eve", "eve@example.org")
ROLE = "prompts/role.md"


@pytest.fixture
def proposal() -> Proposal:
    proposal = make_proposal(make_harness(), teach(1))
    # As approved by somebody.
    Proposal.objects.filter(pk=proposal.pk).update(state="drafted")
    proposal.refresh_from_db()
    approve_proposal(DEV, proposal)
    return proposal


@pytest.fixture
def there(proposal: Proposal, tmp_path: Path, settings: Settings) -> HarnessRepository:
    """The team's repository, which has our main."""
    address = tmp_path / "there.git"
    settings.HARNESS_REMOTES = {"shop": {"url": str(address), "name": "team"}}
    return import_repository(open_repository(proposal.harness).path, address)


def edit(
    repository: HarnessRepository, proposal: Proposal, content: bytes, path: str = ROLE, **more: Any
) -> str:
    """Somebody goes on with the branch, without the workbench."""
    options = {"parent": proposal.branch, "author": EVE, "message": "outside", **more}
    return repository.commit(proposal.branch, {path: content}, **options)


def rewrite(repository: HarnessRepository, proposal: Proposal, content: bytes) -> str:
    """Somebody forces the branch to a history without our commit."""
    head = repository.resolve(proposal.branch)
    return edit(repository, proposal, content, parent=proposal.base_commit, expected_head=head)


def fetch(harness: Harness) -> Job:
    job = start_fetch(DEV, harness, enqueue=False)
    perform_job(job.pk)
    job.refresh_from_db()
    return job


def standing(proposal: Proposal) -> Standing:
    proposal.refresh_from_db()
    return read_standing(proposal, "team")


def places(proposal: Proposal) -> tuple[Here, There]:
    found = standing(proposal)
    return found.here, found.there


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


def commit_odd_path(proposal: Proposal) -> str:
    """Somebody pushes a file whose name is not UTF-8, which only git itself can write."""
    path = str(open_repository(proposal.harness).path)

    def git(*arguments: str, stdin: bytes = b"") -> str:
        asked = ["git", "-C", path, "-c", "user.name=Eve", "-c", "user.email=eve@example.org", *arguments]
        return subprocess.run(asked, input=stdin, capture_output=True, check=True).stdout.decode().strip()

    blob = git("hash-object", "-w", "--stdin", stdin=b"x\n")
    tree = git("mktree", stdin=f"100644 blob {blob}\tnonutf".encode() + b"\xff.md\n")
    listed = git("ls-tree", proposal.branch)
    whole = git("mktree", stdin=f"{listed}\n040000 tree {tree}\tskills\n".encode())
    new = git("commit-tree", whole, "-p", proposal.head_commit, "-m", "odd")
    git("update-ref", f"refs/heads/{proposal.branch}", new)
    return new


def test_names_of_files_that_no_database_takes_stop_no_round(proposal: Proposal) -> None:
    new = commit_odd_path(proposal)
    follow_all()
    assert Proposal.objects.get().head_commit == new
    with pytest.raises(EditRefused):
        approve_proposal(ANNA, Proposal.objects.get())


def test_a_step_takes_no_proposal_whose_branch_has_moved(proposal: Proposal) -> None:
    edit(open_repository(proposal.harness), proposal, teach(1, 9))
    with pytest.raises(LoopError, match="has moved"):
        start_step(DEV, proposal.harness, [proposal])
    assert not proposal.harness.steps.exists()


def test_a_step_says_how_a_branch_that_moved_inside_it_can_be_looked_at(proposal: Proposal) -> None:
    step = start_step(DEV, proposal.harness, [proposal])
    edit(open_repository(proposal.harness), proposal, teach(1, 9))
    move_live(proposal.harness, {"prompts/request.md": b"{{ danmaku[0].text }} \n"})
    with pytest.raises(StaleState, match="take it out of the step"):
        rebuild_step(DEV, step)


def test_one_proposal_that_cannot_be_followed_does_not_stop_the_others(
    proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = make_proposal(proposal.harness, teach(3))
    repository = open_repository(proposal.harness)
    heads = [edit(repository, each, teach(n)) for n, each in ((8, proposal), (9, other))]
    follow = outside.follow_branch

    def fail(actor: Actor, followed: Proposal, theirs: str = "") -> bool:
        if followed.pk == proposal.pk:
            raise DataError("no database takes this")
        return follow(actor, followed, theirs)

    monkeypatch.setattr(outside, "follow_branch", fail)
    assert follow_branches(SYSTEM, proposal.harness) == [other]
    assert Proposal.objects.get(pk=other.pk).head_commit == heads[1]


def test_a_branch_that_was_made_to_stand_for_main_does_not_move_main(proposal: Proposal) -> None:
    repository = open_repository(proposal.harness)
    main, ref = repository.resolve("main"), f"refs/heads/{proposal.branch}"
    asked = ["git", "-C", str(repository.path), "symbolic-ref", ref, "refs/heads/main"]
    subprocess.run(asked, check=True)
    assert (places(proposal)[0], follow_branches(SYSTEM, proposal.harness)) == (Here.POINTER, [])
    keep_ours(DEV, proposal, main)
    assert (repository.resolve("main"), repository.resolve(ref)) == (main, proposal.head_commit)
    assert places(proposal)[0] == Here.SAME


def test_a_branch_that_stands_for_one_that_is_not_there_is_put_back(proposal: Proposal) -> None:
    repository = open_repository(proposal.harness)
    ref = f"refs/heads/{proposal.branch}"
    subprocess.run(["git", "-C", str(repository.path), "symbolic-ref", ref, "refs/heads/nothing"], check=True)
    assert places(proposal)[0] == Here.DELETED
    keep_ours(DEV, proposal, "")
    assert places(proposal)[0] == Here.SAME


def test_a_branch_below_the_one_that_was_deleted_is_kept_elsewhere(proposal: Proposal) -> None:
    repository, head = open_repository(proposal.harness), proposal.head_commit
    new = edit(repository, proposal, teach(9))
    repository.delete_branch(proposal.branch)
    repository.move_branch(f"{proposal.branch}/x", new, expected_head=None)
    keep_ours(DEV, proposal, "")
    assert repository.branches()[proposal.branch] == head
    assert repository.branches()[f"replaced/{proposal.pk}-{new[:12]}"] == new


def edit_many(repository: HarnessRepository, proposal: Proposal) -> str:
    files = {f"prompts/f{n}.md": b"x\n" for n in range(MOST_FILES + 1)}
    return repository.commit(proposal.branch, files, parent=proposal.branch, author=EVE, message="many")


def edit_large(repository: HarnessRepository, proposal: Proposal) -> str:
    return edit(repository, proposal, b"x\n" * LARGEST_FILE, "prompts/big.md")


@pytest.mark.parametrize(
    ("add", "reason"), [(edit_many, "changes 502 files"), (edit_large, "big.md has 2,000,000 bytes")]
)
def test_what_is_too_much_to_be_judged_is_not_taken_but_said(
    proposal: Proposal, add: Callable[[HarnessRepository, Proposal], str], reason: str
) -> None:
    repository, head = open_repository(proposal.harness), proposal.head_commit
    new = add(repository, proposal)
    assert follow_branches(SYSTEM, proposal.harness) == []
    assert (standing(proposal).is_open, reason in standing(proposal).refused) == (True, True)
    for action in (
        lambda: approve_proposal(ANNA, proposal),
        lambda: take_theirs(DEV, proposal, new),
        lambda: edit_file(DEV, proposal, ROLE, "knows: q1\n", head),
    ):
        with pytest.raises(LoopError, match=reason):
            action()
    keep_ours(DEV, proposal, new)
    assert (repository.resolve(proposal.branch), standing(proposal).is_open) == (head, False)


def test_too_much_on_the_remote_can_be_left_there(proposal: Proposal, there: HarnessRepository) -> None:
    push_proposals(DEV, proposal.harness)
    theirs = edit_many(there, proposal)
    fetch(proposal.harness)
    assert (places(proposal)[1], "502 files" in standing(proposal).refused) == (There.AHEAD, True)
    keep_ours(DEV, proposal, theirs)
    assert (places(proposal)[1], standing(proposal).is_open) == (There.BEHIND, False)


def test_what_is_heavy_is_read_before_anybody_has_to_wait(
    proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit(open_repository(proposal.harness), proposal, teach(1, 9))
    done: list[str] = []

    def build(*given: Any) -> dict[str, object]:
        done.append("read")
        return rebuild_manifest(*given)

    def lock(given: Proposal) -> None:
        done.append("locked")
        lock_record(given)

    monkeypatch.setattr(outside, "rebuild_manifest", build)
    monkeypatch.setattr(outside, "lock_record", lock)
    assert follow_branches(SYSTEM, proposal.harness) == [proposal]
    assert done == ["read", "locked"]


def test_what_moved_while_it_was_read_is_left_to_the_next_round(
    proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = open_repository(proposal.harness)
    edit(repository, proposal, teach(1, 9))

    def move_on(*given: Any) -> dict[str, object]:
        monkeypatch.undo()
        edit(repository, proposal, teach(1, 9, 10))
        return rebuild_manifest(*given)

    monkeypatch.setattr(outside, "rebuild_manifest", move_on)
    assert follow_branches(SYSTEM, proposal.harness) == []
    assert follow_branches(SYSTEM, proposal.harness) == [proposal]
    assert Proposal.objects.get().head_commit == repository.resolve(proposal.branch)


def die_after_rebase(proposal: Proposal, monkeypatch: pytest.MonkeyPatch) -> str:
    """The branch takes main in, and whoever did it dies before the record is written; returns what is live."""
    live = move_live(proposal.harness, {"prompts/request.md": b"{{ danmaku[0].text }} \n"})
    move = rebasing.move_branches

    def die(built: Sequence[rebasing.BuiltRebase]) -> None:
        move(built)
        raise KeyboardInterrupt

    monkeypatch.setattr(rebasing, "move_branches", die)
    with pytest.raises(KeyboardInterrupt):
        rebase_proposal(DEV, Proposal.objects.get())
    monkeypatch.undo()
    return live


def test_a_rebase_that_died_is_no_change_from_outside(
    proposal: Proposal, monkeypatch: pytest.MonkeyPatch
) -> None:
    die_after_rebase(proposal, monkeypatch)
    assert follow_branches(SYSTEM, proposal.harness) == [proposal]
    found, repository = Proposal.objects.get(), open_repository(proposal.harness)
    assert (found.base_commit, found.state) == (repository.resolve("main"), ProposalState.CONFIRMED)
    assert (found.head_commit, found.outside_commit) == (repository.resolve(found.branch), "")
    assert not Event.objects.filter(verb="proposal.changed_outside").exists()


def test_what_only_looks_like_our_rebase_is_marked(proposal: Proposal) -> None:
    move_live(proposal.harness, {"prompts/request.md": b"{{ danmaku[0].text }} \n"})
    repository = open_repository(proposal.harness)
    asked = ["git", "-C", str(repository.path), "-c", "user.name=E", "-c", "user.email=e@example.org"]
    evil = edit(repository, proposal, teach(7))
    parents = ["-p", proposal.head_commit, "-p", "main", "-m", f"x\n\nProposal: {proposal.pk}"]
    made = subprocess.run(
        [*asked, "commit-tree", f"{evil}^{{tree}}", *parents], capture_output=True, check=True, text=True
    )
    repository.move_branch(proposal.branch, made.stdout.strip(), expected_head=evil)
    follow_branches(SYSTEM, proposal.harness)
    assert Proposal.objects.get().outside_commit == made.stdout.strip()
