"""What people said of proposals: whose approvals hold and whose do not, the threads, and the sums for a list."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from django.db.models import Count

from evolution.loop.repositories import open_repository
from evolution.loop.review_threads import PlacedThread, place_threads
from evolution.loop.reviews import approvals, find_authors, is_approved, is_author
from evolution.models import Proposal, Review, ReviewThread
from evolution.states import ReviewVerdict
from harness_repo.git.errors import HarnessRepoError


@dataclass(frozen=True)
class Standing:
    """What reviewers say of a proposal: of its head, and of what its branch has moved on from."""

    approvals: list[Review]
    # approvals that hold no longer, newest first, one of each reviewer; `commit` is what they were given for
    stale: list[Review]
    # of this head
    changes: list[Review]
    is_approved: bool
    # somebody else than an author has to approve
    needs_other: bool
    # who made or asked for it, as git names them; only where it matters
    authors: list[str]
    # the newest request for changes of an earlier version, and the commit that answers it
    requested: Review | None = None
    answered_by: str = ""


@dataclass(frozen=True)
class SpokenThread:
    """A thread with where it stands now, and the commit that answered it when it was sent to the editor.

    A commit that does not touch the file of the thread is no answer to it.
    """

    placed: PlacedThread
    answered_by: str = ""

    @property
    def thread(self) -> ReviewThread:
        """The record."""
        return self.placed.thread


@dataclass
class Summary:
    """One proposal's reviews for a list."""

    approved_by: list[str] = field(default_factory=list)
    open_threads: int = 0


def read_standing(proposal: Proposal) -> Standing:
    """Whose reviews of the proposal hold."""
    given = approvals(proposal)
    holds = {review.reviewer for review in given}
    needs_other = proposal.harness.needs_second_reviewer
    asked = proposal.reviews.filter(verdict=ReviewVerdict.CHANGES).exclude(commit=proposal.head_commit)
    return Standing(
        approvals=given,
        stale=[review for review in _last_approvals(proposal) if review.reviewer not in holds],
        changes=list(
            proposal.reviews.filter(commit=proposal.head_commit, verdict=ReviewVerdict.CHANGES)
            if proposal.head_commit
            else []
        ),
        is_approved=_ask_git(proposal),
        needs_other=needs_other,
        authors=_list_authors(proposal) if needs_other else [],
        requested=asked.order_by("-pk").first(),
        answered_by=next(
            (entry["commit"] for entry in reversed(proposal.feedback) if entry.get("commit")), ""
        ),
    )


def _last_approvals(proposal: Proposal) -> list[Review]:
    last: dict[str, Review] = {}
    for review in proposal.reviews.filter(verdict=ReviewVerdict.APPROVED).order_by("-pk"):
        last.setdefault(review.reviewer, review)
    return list(last.values())


def _ask_git(proposal: Proposal) -> bool:
    try:
        return is_approved(proposal)
    except HarnessRepoError:
        return False


def _list_authors(proposal: Proposal) -> list[str]:
    """Names, without the addresses."""
    try:
        return sorted(name for name in find_authors(proposal) if "@" not in name)
    except HarnessRepoError:
        return []


def may_approve_alone(proposal: Proposal, name: str) -> bool:
    """Whether this person's approval is enough."""
    if not proposal.harness.needs_second_reviewer:
        return True
    try:
        return not is_author(proposal, name)
    except HarnessRepoError:
        return False


def list_threads(proposal: Proposal) -> list[SpokenThread]:
    """All threads about the proposal's lines, oldest first, with where they stand now."""
    threads = proposal.threads.prefetch_related("comments")
    answers = {
        pk: str(entry.get("commit") or "") for entry in proposal.feedback for pk in entry.get("threads") or []
    }
    touched = {commit: _touched(proposal, commit) for commit in {*answers.values()} - {""}}
    placed = place_threads(proposal, threads)
    return [
        SpokenThread(each, _answer(each.thread, answers.get(each.thread.pk, ""), touched)) for each in placed
    ]


def _answer(thread: ReviewThread, commit: str, touched: Mapping[str, set[str] | None]) -> str:
    paths = touched.get(commit)
    return commit if paths is None or not thread.path or thread.path in paths else ""


def _touched(proposal: Proposal, commit: str) -> set[str] | None:
    """The files that a commit of the branch changed; None when git has it no longer."""
    repository = open_repository(proposal.harness)
    try:
        before = repository.log(commit, 1)[0].parents[:1]
        return set(repository.changed_files(before[0], commit)) if before else None
    except HarnessRepoError:
        return None


def summarise(proposals: Iterable[Proposal]) -> dict[int, Summary]:
    """Approvals that hold and open threads of each proposal, in two queries."""
    heads = {proposal.pk: proposal.head_commit for proposal in proposals}
    found: dict[int, Summary] = defaultdict(Summary)
    last: dict[tuple[int, str], Review] = {}
    for review in Review.objects.filter(proposal__in=heads).order_by("pk"):
        if review.commit == heads[review.proposal_id]:
            last[review.proposal_id, review.reviewer] = review
    for (pk, name), review in last.items():
        if review.verdict == ReviewVerdict.APPROVED:
            found[pk].approved_by.append(name)
    unsettled = ReviewThread.objects.filter(proposal__in=heads, resolved_at=None).order_by()
    for pk, count in unsettled.values_list("proposal").annotate(Count("pk")):
        found[pk].open_threads = count
    return dict(found)
