import pytest
from django.contrib.auth.models import User

from evolution.actions.reviews import approve_proposal
from evolution.actors import SYSTEM, Actor, Role
from evolution.errors import LoopError
from evolution.loop.outside import follow_branches
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import (
    approvals,
    carry_approvals,
    find_authors,
    is_approved,
    record_review,
    take_head,
)
from evolution.loop.steps import merge_step
from evolution.models import Event, Harness, Proposal, Review
from evolution.states import ProposalState, ReviewVerdict
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.evolution.measured import ANNA, DEV, make_harness, make_proposal

BY = Author("t", "t@example.org")
TEXT = "".join(f"line {n}\n" for n in range(1, 41)).encode()
BOB = Actor("bob", Role.DEVELOPER)


def edited(number: int, words: bytes) -> bytes:
    return TEXT.replace(b"line %d\n" % number, words + b"\n")


def commit(repository: HarnessRepository, branch: str, parent: str, **files: bytes) -> str:
    edits = {name.replace("_", "."): data for name, data in files.items()}
    return repository.commit(branch, edits, parent=parent, author=BY, message="m")


@pytest.fixture
def proposal(db: None) -> Proposal:
    made = make_proposal(make_harness(role=TEXT), edited(30, b"new words"))
    record_review(ANNA, made, ReviewVerdict.APPROVED, "fine")
    return made


def advance_main(proposal: Proposal, data: bytes) -> str:
    """Another version live, and what it would be with the proposal's change."""
    repository = open_repository(proposal.harness)
    main = repository.resolve("main")
    return commit(repository, "main", main, **{"prompts/role_md": data})


def put_on(proposal: Proposal, base: str) -> tuple[str, str]:
    """Merge the new base into the proposal's branch; returns base and head of before."""
    old = proposal.base_commit, proposal.head_commit
    repository = open_repository(proposal.harness)
    proposal.head_commit = repository.merge(
        proposal.branch, proposal.head_commit, [base], author=BY, message="rebase"
    )
    proposal.base_commit = base
    proposal.save()
    return old


def test_an_identical_diff_on_a_new_base_keeps_its_approvals(proposal: Proposal) -> None:
    old = put_on(proposal, advance_main(proposal, b"on top\n" + TEXT))

    assert carry_approvals(BOB, proposal, *old)

    (kept,) = approvals(proposal)
    assert (kept.reviewer, kept.carried_from) == ("anna", old[1])
    assert (proposal.state, is_approved(proposal)) == (ProposalState.CONFIRMED, True)
    assert Event.objects.get(verb="proposal.approvals_carried").actor == "bob"


def test_another_diff_on_a_new_base_waits_for_review(proposal: Proposal) -> None:
    old = put_on(proposal, advance_main(proposal, edited(27, b"near it")))

    assert not carry_approvals(BOB, proposal, *old)

    assert approvals(proposal) == []
    assert Proposal.objects.get().state == ProposalState.DRAFTED


def test_a_base_that_moves_alone_takes_the_approvals_with_it(proposal: Proposal) -> None:
    base = advance_main(proposal, edited(27, b"near it"))
    old = put_on(proposal, base)
    record_review(ANNA, proposal, ReviewVerdict.APPROVED)
    Proposal.objects.update(base_commit=old[0])
    proposal.refresh_from_db()
    proposal.base_commit = base

    assert not carry_approvals(BOB, proposal, old[0], proposal.head_commit)

    assert approvals(proposal) == []


def test_a_new_commit_makes_approvals_stale_and_its_reversal_does_not_bring_them_back(
    proposal: Proposal,
) -> None:
    repository = open_repository(proposal.harness)
    first = proposal.head_commit
    for words in (b"other words", b"new words"):
        edit = {"prompts/role_md": edited(30, words)}
        take_head(DEV, proposal, commit(repository, proposal.branch, proposal.head_commit, **edit))
        assert not is_approved(proposal)

    assert proposal.head_commit != first
    assert Proposal.objects.get().state == ProposalState.DRAFTED


def test_whoever_only_rebases_an_approved_diff_may_still_be_its_reviewer(proposal: Proposal) -> None:
    proposal.harness.needs_second_reviewer = True
    repository = open_repository(proposal.harness)
    base = advance_main(proposal, b"on top\n" + TEXT)
    old = proposal.base_commit, proposal.head_commit
    proposal.head_commit = repository.merge(
        proposal.branch, old[1], [base], author=Author("anna", "anna@example.org"), message="rebase"
    )
    proposal.base_commit = base

    carry_approvals(ANNA, proposal, *old)

    assert is_approved(proposal)


LIST = b"- Look it up.\n- Ask.\n- Say the amount.\n- Confirm.\n- Write it down.\n- Thank.\n- Close.\n"


@pytest.mark.django_db
def test_an_approval_does_not_follow_the_same_lines_to_another_place() -> None:
    parts = b"# Small talk\n" + LIST + b"# Refunds\n" + LIST
    one, two = parts.replace(b"- Confirm.\n", b"", 1), b"".join(parts.rpartition(b"- Confirm.\n")[::2])
    proposal = make_proposal(make_harness(role=parts), one)
    record_review(ANNA, proposal, ReviewVerdict.APPROVED)
    repository = open_repository(proposal.harness)
    commit(repository, proposal.branch, proposal.head_commit, **{"prompts/role_md": two})

    follow_branches(SYSTEM, proposal.harness)

    assert approvals(Proposal.objects.get()) == []
    assert Proposal.objects.get().state == ProposalState.DRAFTED


def test_authors_are_those_of_merged_side_branches_and_co_authors_too(proposal: Proposal) -> None:
    repository = open_repository(proposal.harness)
    text = edited(31, b"of alice")
    side = repository.commit(
        "side",
        {"prompts/role.md": text},
        parent=proposal.head_commit,
        author=Author("alice", "alice@workbench.invalid"),
        message="m\n\nco-authored-by: Dan <dan@example.org>",
    )
    made = commit(repository, "other", proposal.head_commit, b_md=b"of t\n")
    proposal.head_commit = repository.merge(
        "other", made, [side], author=Author("carol", "carol@example.org"), message="merge"
    )

    found = find_authors(proposal)

    assert {"alice", "dan", "dan@example.org", "carol", "t"} <= found
    assert find_authors(proposal, proposal.base_commit) == set()


def push(proposal: Proposal, author: Author, number: int = 35) -> None:
    """Somebody goes on with the branch outside; it is followed."""
    repository = open_repository(proposal.harness)
    before = repository.read_file(proposal.branch, "prompts/role.md")
    edit = {"prompts/role.md": before.replace(b"line %d\n" % number, b"another\n")}
    repository.commit(proposal.branch, edit, parent=proposal.branch, author=author, message="outside")
    follow_branches(SYSTEM, proposal.harness)
    proposal.refresh_from_db()


@pytest.fixture
def guarded(proposal: Proposal) -> Proposal:
    """The same where somebody else than its authors has to approve."""
    Harness.objects.filter(pk=proposal.harness_id).update(needs_second_reviewer=True)
    Proposal.objects.update(state=ProposalState.DRAFTED)
    Review.objects.all().delete()
    proposal.refresh_from_db()
    return proposal


def test_nobody_hides_behind_the_address_of_a_model(guarded: Proposal) -> None:
    push(guarded, Author("bob", "bob@model.invalid"))
    assert not approve_proposal(BOB, guarded)
    assert approve_proposal(ANNA, guarded)


def test_a_second_account_of_the_same_address_is_the_same_person(guarded: Proposal) -> None:
    for name, email in (("alice", "alice@example.org"), ("al", "ALICE@example.org")):
        User.objects.create_user(name, email)
    Proposal.objects.update(created_by="alice")
    guarded.refresh_from_db()
    assert not approve_proposal(Actor("al", Role.DEVELOPER), guarded)


def test_an_author_who_changes_the_address_stays_the_author(guarded: Proposal) -> None:
    user = User.objects.create_user("bob", "bob@example.org")
    push(guarded, Author("Bob Builder", "Bob@example.org"))
    user.email = "other@example.org"
    user.save()
    assert not approve_proposal(BOB, guarded)


def test_a_step_takes_nothing_that_only_its_author_approved_before_the_rule(guarded: Proposal) -> None:
    record_review(DEV, guarded, ReviewVerdict.APPROVED)
    Proposal.objects.update(state=ProposalState.CONFIRMED)
    with pytest.raises(LoopError, match="not its author"):
        merge_step(DEV, guarded.harness, [Proposal.objects.get()])
    record_review(ANNA, guarded, ReviewVerdict.APPROVED)
    assert merge_step(DEV, guarded.harness, [Proposal.objects.get()]).candidate_commit


def test_approvals_that_end_with_a_moved_base_are_in_the_audit_trail(proposal: Proposal) -> None:
    base = advance_main(proposal, edited(27, b"near it"))
    old, proposal.base_commit = proposal.base_commit, base
    carry_approvals(BOB, proposal, old, proposal.head_commit)
    event = Event.objects.get(verb="proposal.approvals_ended")
    assert (event.actor, event.data["reviewers"]) == ("bob", ["anna"])
