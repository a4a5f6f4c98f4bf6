"""Branches that no edit of ours would make: names that are no text, too much, symbolic, half of a rebase."""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from django.db import DataError
from pytest_django import Settings

from evolution.actions.branches import (
    keep_ours,
    push_proposals,
    take_theirs,
)
from evolution.actions.conflicts import rebase_proposal
from evolution.actions.proposals import edit_file
from evolution.actions.reviews import approve_proposal
from evolution.actions.steps import rebuild_step, start_step
from evolution.actors import SYSTEM, Actor
from evolution.errors import LoopError, StaleState
from evolution.loop import outside, rebasing
from evolution.loop.edits import EditRefused
from evolution.loop.locks import lock_record
from evolution.loop.outside import Here, There, follow_branches
from evolution.loop.proposals import rebuild_manifest
from evolution.loop.repositories import open_repository
from evolution.loop.version_size import LARGEST_FILE, MOST_FILES
from evolution.models import Event, Proposal
from evolution.states import ProposalState
from evolution.tasks.branches import follow_all
from harness_repo.git.repository import HarnessRepository
from tests.evolution.actions.branching import (
    EVE,
    ROLE,
    commit_odd_path,
    edit,
    fetch,
    make_approved,
    make_remote,
    places,
    standing,
)
from tests.evolution.measured import ANNA, DEV, make_proposal, move_live, teach

pytestmark = pytest.mark.django_db


@pytest.fixture
def proposal() -> Proposal:
    return make_approved()


@pytest.fixture
def there(proposal: Proposal, tmp_path: Path, settings: Settings) -> HarnessRepository:
    return make_remote(proposal, tmp_path / "there.git", settings)


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
