import subprocess
from pathlib import Path

import pytest

from evolution.actors import Actor, Role
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import (
    approvals,
    carry_approvals,
    diff_digest,
    is_approved,
    record_review,
    take_head,
)
from evolution.models import Event, Proposal
from evolution.states import ProposalState, ReviewVerdict
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository
from tests.evolution.measured import ANNA, DEV, make_harness, make_proposal

BY = Author("t", "t@example.org")
TEXT = "".join(f"line {n}\n" for n in range(1, 41)).encode()
BOB = Actor("bob", Role.DEVELOPER)


def edited(number: int, words: bytes) -> bytes:
    return TEXT.replace(b"line %d\n" % number, words + b"\n")


@pytest.fixture
def repository(tmp_path: Path) -> HarnessRepository:
    return HarnessRepository.create(tmp_path / "r.git", {"a.md": TEXT}, author=BY, message="first")


def commit(repository: HarnessRepository, branch: str, parent: str, **files: bytes) -> str:
    edits = {name.replace("_", "."): data for name, data in files.items()}
    return repository.commit(branch, edits, parent=parent, author=BY, message="m")


def patch_id(repository: HarnessRepository, base: str, head: str) -> str:
    """What git itself takes for the same change."""
    told = repository.diff(base, head).encode()
    asked = ["git", "patch-id", "--verbatim"]
    return subprocess.run(asked, input=told, capture_output=True, check=True).stdout.split()[0].decode()


def test_the_same_change_on_another_base_has_the_same_digest(repository: HarnessRepository) -> None:
    base = repository.resolve("main")
    one = commit(repository, "one", base, a_md=edited(30, b"new words"))
    moved = commit(repository, "moved", base, a_md=b"on top\n" + TEXT, b_md=b"other\n")
    two = commit(repository, "two", moved, a_md=b"on top\n" + edited(30, b"new words"))

    assert diff_digest(repository, base, one) == diff_digest(repository, moved, two)
    assert patch_id(repository, base, one) == patch_id(repository, moved, two)


@pytest.mark.parametrize(
    "data",
    [edited(30, b"new  words"), edited(31, b"new words"), edited(30, b"new words").rstrip(b"\n")],
    ids=["white space", "another line", "no newline at the end"],
)
def test_another_change_has_another_digest(repository: HarnessRepository, data: bytes) -> None:
    base = repository.resolve("main")
    one = commit(repository, "one", base, a_md=edited(30, b"new words"))
    two = commit(repository, "two", base, a_md=data)

    assert diff_digest(repository, base, one) != diff_digest(repository, base, two)


def test_lines_around_the_change_count(repository: HarnessRepository) -> None:
    base = repository.resolve("main")
    one = commit(repository, "one", base, a_md=edited(30, b"new words"))
    other = commit(repository, "other", base, a_md=edited(29, b"never do this:"))
    data = edited(30, b"new words").replace(b"line 29\n", b"never do this:\n")
    two = commit(repository, "two", other, a_md=data)

    assert diff_digest(repository, base, one) != diff_digest(repository, other, two)


@pytest.mark.parametrize("pair", [(b"\xff\n", b"\xfe\n"), (b"\0a", b"\0b")], ids=["not UTF-8", "binary"])
def test_bytes_that_are_no_text_are_told_apart(
    repository: HarnessRepository, pair: tuple[bytes, bytes]
) -> None:
    base = repository.resolve("main")
    heads = [commit(repository, f"b{n}", base, c_md=data) for n, data in enumerate(pair)]

    one, two = (diff_digest(repository, base, head) for head in heads)
    assert one != two


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
