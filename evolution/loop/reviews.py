"""Stage 4, judged by people: whose approvals hold for the version of a proposal that stands on its branch now.

An approval is of a diff. It holds for one commit, and for a later one only where what is changed is the same to
the letter. What people say about lines is in `review_threads`.
"""

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor, Role
from evolution.loop.authors import author_of, list_authors
from evolution.loop.diff_digests import diff_digest
from evolution.loop.people import find_barred
from evolution.loop.proposals import rebuild_manifest
from evolution.loop.repositories import open_repository
from evolution.models import Event, Proposal, Review
from evolution.states import ProposalState, ReviewVerdict
from evolution.transitions import move, record
from harness_repo.git.errors import HarnessRepoError

_VERBS = {
    ReviewVerdict.APPROVED: "proposal.approved",
    ReviewVerdict.CHANGES: "proposal.changes_requested",
    ReviewVerdict.WITHDRAWN: "proposal.approval_withdrawn",
}


def approvals(proposal: Proposal) -> list[Review]:
    """The approvals that hold for the head of the branch, oldest first; one of each reviewer."""
    return _approvals_of(proposal, proposal.head_commit)


def _approvals_of(proposal: Proposal, commit: str) -> list[Review]:
    last: dict[str, Review] = {}
    if commit:
        for review in proposal.reviews.filter(commit=commit).order_by("pk"):
            last[review.reviewer] = review
    return [review for review in last.values() if review.verdict == ReviewVerdict.APPROVED]


def is_approved(proposal: Proposal) -> bool:
    """Whether the approvals that hold are enough: one, by somebody else than its authors where that is asked.

    The word of people whose role here is below developer by now does not count.
    """
    given = approvals(proposal)
    barred = find_barred(proposal.harness, [review.reviewer for review in given])
    given = [review for review in given if review.reviewer not in barred]
    if not proposal.harness.needs_second_reviewer:
        return bool(given)
    return any(not is_author(proposal, review.reviewer, _first_commit(review)) for review in given)


def _first_commit(review: Review) -> str:
    # Whoever only put an approved diff on another base has not written any of it.
    return review.carried_from or review.commit


def is_author(proposal: Proposal, name: str, head: str = "") -> bool:
    """Whether a person asked for the draft, or made one of its commits up to `head` (default: of the branch)."""
    return bool(names_of(name) & find_authors(proposal, head))


def find_authors(proposal: Proposal, head: str = "") -> set[str]:
    """Names and addresses, in small letters, of who asked for the draft and of who made its commits; no models.

    All commits count that the branch has and its base lacks, those of merged side branches too, with everybody whom
    they name as co-author. Only what the workbench recorded as a draft was made by a model: commits that came from
    outside bear the names that git was told, and those of the people whose addresses these were when they came.
    """
    found = names_of(proposal.created_by) if proposal.created_by else set()
    commit = head or proposal.head_commit
    if not commit:
        return found
    events = Event.objects.filter(target_kind="proposal", target_id=proposal.pk)
    drafts = _list_drafts(events)
    commits = open_repository(proposal.harness).log_between(proposal.base_commit, commit)
    for info in commits:
        if info.sha not in drafts:
            found |= {name.casefold() for each in list_authors(info) for name in (each.name, each.email)}
    shas = [info.sha for info in commits]
    came = events.filter(verb="proposal.changed_outside", data__commit__in=shas)
    for people in came.values_list("data__people", flat=True):
        found |= {name.casefold() for name in people or ()}
    return found


def is_edited(proposal: Proposal) -> bool:
    """Whether a commit of the branch is none of the editor's: people's words are in it. Merges alone are no edit."""
    if not proposal.head_commit:
        return False
    drafts = list_drafts(proposal)
    commits = open_repository(proposal.harness).log_between(proposal.base_commit, proposal.head_commit)
    return any(info.sha not in drafts and len(info.parents) == 1 for info in commits)


def list_drafts(proposal: Proposal) -> set[str]:
    """The commits that the editor made, by the audit trail: what git says of an author proves nothing."""
    return _list_drafts(Event.objects.filter(target_kind="proposal", target_id=proposal.pk))


def _list_drafts(events: QuerySet[Event]) -> set[str]:
    """The commits that the editor made: see `proposals`, which alone says what files a commit of it changed."""
    recorded = events.filter(verb="proposal.committed", actor=SYSTEM.name, data__has_key="files")
    return set(recorded.values_list("data__commit", flat=True))


def name_people(emails: Iterable[str]) -> list[str]:
    """The names of the users whose addresses these are now, sorted."""
    wanted = {email.casefold() for email in emails}
    users = get_user_model().objects.exclude(email="").values_list("username", "email")
    return sorted(name for name, email in users if email.casefold() in wanted)


def names_of(name: str) -> set[str]:
    """What git calls a person of the workbench, in small letters: their name and addresses."""
    emails = get_user_model().objects.filter(username=name).values_list("email", flat=True)
    ours = author_of(Actor(name, Role.VIEWER)).email
    return {name.casefold(), ours.casefold(), *(email.casefold() for email in emails if email)}


def record_review(actor: Actor, proposal: Proposal, verdict: ReviewVerdict, text: str = "") -> Review:
    """Keep what a reviewer says of the head of the locked proposal; said again, it is kept once."""
    last = proposal.reviews.filter(reviewer=actor.name).first()
    if last and (last.commit, last.verdict, last.text) == (proposal.head_commit, verdict.value, text):
        return last
    repository = open_repository(proposal.harness)
    review = Review.objects.create(
        proposal=proposal,
        reviewer=actor.name,
        verdict=verdict,
        commit=proposal.head_commit,
        diff_digest=diff_digest(repository, proposal.base_commit, proposal.head_commit),
        text=text,
    )
    record(actor, _VERBS[verdict], proposal, text, commit=review.commit)
    return review


def carry_approvals(actor: Actor, proposal: Proposal, old_base: str, old_head: str) -> bool:
    """Keep the approvals of a locked proposal whose base or head has just moved, if its diff is still the same.

    Returns whether it is. If not, a confirmed proposal waits for review again; one in a step is the step's business.
    """
    given = _approvals_of(proposal, old_head)
    new = _try_digest(proposal, proposal.base_commit, proposal.head_commit)
    is_same = bool(new) and new == _try_digest(proposal, old_base, old_head)
    has_moved = old_head != proposal.head_commit
    if is_same and has_moved:
        _carry(actor, proposal, [review for review in given if review.diff_digest == new])
    elif not is_same and not has_moved:
        _withdraw(actor, proposal, given)
    if not is_same and proposal.state == ProposalState.CONFIRMED:
        move(proposal, ProposalState.DRAFTED, actor, _("the branch has moved"))
    return is_same


def _try_digest(proposal: Proposal, base: str, head: str) -> str:
    """Empty when git has the commits no longer."""
    try:
        return diff_digest(open_repository(proposal.harness), base, head) if base and head else ""
    except (HarnessRepoError, ValueError):
        return ""


def _carry(actor: Actor, proposal: Proposal, given: list[Review]) -> None:
    Review.objects.bulk_create(
        Review(
            proposal=proposal,
            reviewer=review.reviewer,
            verdict=ReviewVerdict.APPROVED,
            commit=proposal.head_commit,
            diff_digest=review.diff_digest,
            text=review.text,
            carried_from=_first_commit(review),
        )
        for review in given
    )
    if given:
        names = [review.reviewer for review in given]
        record(actor, "proposal.approvals_carried", proposal, commit=proposal.head_commit, reviewers=names)


def _withdraw(actor: Actor, proposal: Proposal, given: list[Review]) -> None:
    """End approvals of a head that stays while its base moved: the diff is another."""
    Review.objects.bulk_create(
        Review(
            proposal=proposal,
            reviewer=review.reviewer,
            verdict=ReviewVerdict.WITHDRAWN,
            commit=review.commit,
            diff_digest=review.diff_digest,
            text=_("the base has moved"),
        )
        for review in given
    )
    if given:
        names = [review.reviewer for review in given]
        record(actor, "proposal.approvals_ended", proposal, commit=proposal.head_commit, reviewers=names)


def take_head(actor: Actor, proposal: Proposal, head: str, **data: Any) -> bool:
    """Make a commit of its branch the head of the locked proposal; returns whether its approvals still hold."""
    old = proposal.head_commit
    proposal.head_commit = head
    proposal.manifest = rebuild_manifest(proposal, head)
    proposal.save(update_fields=["head_commit", "manifest", "updated_at"])
    record(actor, "proposal.committed", proposal, commit=head, **data)
    return carry_approvals(actor, proposal, proposal.base_commit, old)
