import pytest
from django.contrib.auth.models import User

from evolution.actions.proposals import edit_file
from evolution.actions.reviews import (
    Place,
    approve_proposal,
    begin_thread,
    edit_comment,
    reply_to_thread,
    request_changes,
    resolve_thread,
    withdraw_approval,
)
from evolution.actors import Actor, NotAllowed, Role
from evolution.errors import LoopError, MoveRefused, StaleState
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import approvals, is_approved
from evolution.models import Event, Harness, Job, Proposal, Review, ReviewThread
from evolution.prompts.feedback import LineComment, read_feedback
from evolution.states import ProposalState, ReviewVerdict
from harness_repo.git.objects import Author
from tests.evolution.measured import ANNA, VIEWER, make_harness, make_proposal, steps

pytestmark = pytest.mark.django_db

BOB = Actor("bob", Role.DEVELOPER, "bob@example.org")
ZOE = Actor("zoe", Role.ANNOTATOR)
ROLE = "prompts/role.md"
LINE = Place(ROLE, "new", 1)


@pytest.fixture
def proposal() -> Proposal:
    return make_drafted(make_harness())


def make_drafted(harness: Harness) -> Proposal:
    made = make_proposal(harness, b"knows: q1 q2 q3\n", "teach q3")
    Proposal.objects.filter(pk=made.pk).update(state=ProposalState.DRAFTED)
    made.refresh_from_db()
    return made


def commit_outside(proposal: Proposal, content: bytes, by: str = "eve") -> str:
    return open_repository(proposal.harness).commit(
        proposal.branch,
        {ROLE: content},
        parent=proposal.head_commit,
        author=Author(by, f"{by}@example.org"),
        message="outside",
    )


def test_one_approval_confirms_and_is_kept_once(proposal: Proposal) -> None:
    assert approve_proposal(ANNA, proposal, "fine")
    assert approve_proposal(ANNA, proposal, "fine")

    review = Review.objects.get()
    assert (review.reviewer, review.commit, review.text) == ("anna", proposal.head_commit, "fine")
    stored = Proposal.objects.get()
    assert (stored.state, stored.decided_by) == (ProposalState.CONFIRMED, "anna")
    verbs = Event.objects.filter(target_kind="proposal", target_id=stored.pk).values_list("verb", flat=True)
    assert sorted(verb for verb in verbs if "approved" in verb or "confirmed" in verb) == [
        "proposal.approved",
        "proposal.confirmed",
    ]


def test_approving_refuses_a_branch_that_moved_and_shows_it_next(proposal: Proposal) -> None:
    head = commit_outside(proposal, b"knows: q1 q2 q9\n")

    with pytest.raises(StaleState):
        approve_proposal(ANNA, proposal)

    assert Proposal.objects.get().head_commit == head
    assert not Review.objects.exists()


def test_an_author_can_not_approve_alone_where_a_second_reviewer_is_needed() -> None:
    harness = make_harness()
    Harness.objects.update(needs_second_reviewer=True)
    proposal = make_drafted(Harness.objects.get(pk=harness.pk))
    Proposal.objects.update(created_by="anna")
    proposal.refresh_from_db()

    assert not approve_proposal(ANNA, proposal)
    assert Proposal.objects.get().state == ProposalState.DRAFTED
    assert approve_proposal(BOB, proposal)
    assert [review.reviewer for review in approvals(proposal)] == ["anna", "bob"]


def test_whoever_edits_by_hand_is_an_author() -> None:
    harness = make_harness()
    Harness.objects.update(needs_second_reviewer=True)
    proposal = make_drafted(Harness.objects.get(pk=harness.pk))
    edit_file(BOB, proposal, ROLE, "knows: q1 q2 q4\n", proposal.head_commit)

    assert not approve_proposal(BOB, proposal)
    assert approve_proposal(ANNA, proposal)


def test_a_commit_from_outside_is_known_by_the_address_of_its_author() -> None:
    harness = make_harness()
    Harness.objects.update(needs_second_reviewer=True)
    User.objects.create_user("carl", "carl@corp.example", "a password of tests")
    proposal = make_drafted(Harness.objects.get(pk=harness.pk))
    head = open_repository(harness).commit(
        proposal.branch,
        {ROLE: b"knows: q1 q5\n"},
        parent=proposal.head_commit,
        author=Author("Carl C.", "Carl@corp.example"),
        message="outside",
    )
    with pytest.raises(StaleState):
        approve_proposal(BOB, proposal)
    proposal.refresh_from_db()
    assert proposal.head_commit == head

    assert not approve_proposal(Actor("carl", Role.DEVELOPER), proposal)


def test_an_edit_makes_approvals_stale(proposal: Proposal) -> None:
    approve_proposal(ANNA, proposal)

    edit_file(BOB, proposal, ROLE, "knows: q1 q2 q4\n", proposal.head_commit, message="q3 too")

    assert Proposal.objects.get().state == ProposalState.DRAFTED
    assert not is_approved(Proposal.objects.get())
    assert open_repository(proposal.harness).log(proposal.branch, 1)[0].subject == "q3 too"


def test_an_approval_can_be_taken_back_until_a_step_has_it(proposal: Proposal) -> None:
    approve_proposal(ANNA, proposal)
    withdraw_approval(BOB, proposal)
    assert Proposal.objects.get().state == ProposalState.CONFIRMED

    withdraw_approval(ANNA, proposal, "too early")
    assert Proposal.objects.get().state == ProposalState.DRAFTED
    assert Review.objects.first().verdict == ReviewVerdict.WITHDRAWN  # type: ignore[union-attr]

    approve_proposal(ANNA, proposal)
    proposal.refresh_from_db()
    steps.merge_step(BOB, proposal.harness, [proposal])
    proposal.refresh_from_db()
    with pytest.raises(LoopError, match="taken back"):
        withdraw_approval(ANNA, proposal)


def test_requested_changes_tell_the_editor_of_the_open_threads_only(proposal: Proposal) -> None:
    settled = begin_thread(ZOE, proposal, Place(ROLE, "old", 1), "why not q7?")
    resolve_thread(BOB, settled)
    begun = begin_thread(ZOE, proposal, LINE, "name its source")
    begin_thread(BOB, proposal, Place(), "in Chinese, please")

    request_changes(ANNA, proposal, "Shorter.", enqueue=False)

    stored = Proposal.objects.get()
    assert stored.state == ProposalState.DRAFTING
    told = stored.feedback[0]
    words, comments = read_feedback(told["text"])
    assert words == "Shorter.\nbob: in Chinese, please"
    assert comments == [LineComment(ROLE, "new", 1, "knows: q1 q2 q3", (("zoe", "name its source"),))]
    assert begun.pk in told["threads"]
    assert settled.pk not in told["threads"]
    assert Review.objects.get().verdict == ReviewVerdict.CHANGES
    assert ReviewThread.objects.filter(resolved_at=None).count() == 2


def test_asking_twice_for_the_same_changes_asks_once(proposal: Proposal) -> None:
    for _time in range(2):
        request_changes(ANNA, proposal, "Shorter.", enqueue=False)

    assert Job.objects.count() == 1
    assert len(Proposal.objects.get().feedback) == 1


def test_changes_need_words_or_a_thread(proposal: Proposal) -> None:
    with pytest.raises(LoopError, match="say what"):
        request_changes(ANNA, proposal, "  ", enqueue=False)


def test_changes_of_another_head_than_was_read_are_refused(proposal: Proposal) -> None:
    with pytest.raises(StaleState):
        request_changes(ANNA, proposal, "Shorter.", reviewed=proposal.base_commit, enqueue=False)


def test_a_comment_is_kept_once_with_its_line(proposal: Proposal) -> None:
    one = begin_thread(ZOE, proposal, LINE, "really?\r\n")
    two = begin_thread(ZOE, proposal, LINE, "really?")

    assert one == two
    assert (one.line_text, one.commit, one.created_by) == ("knows: q1 q2 q3", proposal.head_commit, "zoe")
    assert Event.objects.filter(verb="proposal.commented").count() == 1


@pytest.mark.parametrize(
    "place", [Place(ROLE, "new", 99), Place("prompts/none.md", "new", 1), Place("../x", "old", 1)]
)
def test_a_line_that_is_not_there_takes_no_comment(proposal: Proposal, place: Place) -> None:
    with pytest.raises(LoopError):
        begin_thread(ZOE, proposal, place, "here?")


def test_a_comment_says_something_and_not_too_much(proposal: Proposal) -> None:
    for text in (" \n", "x" * 10_001):
        with pytest.raises(LoopError):
            begin_thread(ZOE, proposal, LINE, text)


def test_a_thread_is_answered_settled_and_opened_again(proposal: Proposal) -> None:
    thread = begin_thread(ZOE, proposal, LINE, "really?")
    for _time in range(2):
        reply_to_thread(BOB, thread, "yes")
        resolve_thread(ANNA, thread)
    thread.refresh_from_db()
    assert [comment.text for comment in thread.comments.all()] == ["really?", "yes"]
    assert thread.resolved_by == "anna"

    resolve_thread(ANNA, thread, is_resolved=False)
    thread.refresh_from_db()
    assert (thread.resolved_by, thread.resolved_at) == ("", None)


def test_only_the_author_changes_a_comment(proposal: Proposal) -> None:
    comment = begin_thread(ZOE, proposal, LINE, "really?").comments.get()
    with pytest.raises(NotAllowed):
        edit_comment(BOB, comment, "surely")

    edit_comment(ZOE, comment, "surely?")
    comment.refresh_from_db()
    assert comment.text == "surely?"
    assert Event.objects.get(verb="proposal.comment_edited").data["old"] == "really?"


def test_annotators_comment_and_decide_nothing(proposal: Proposal) -> None:
    begin_thread(ZOE, proposal, LINE, "really?")
    for action in (
        lambda: approve_proposal(ZOE, proposal),
        lambda: withdraw_approval(ZOE, proposal),
        lambda: request_changes(ZOE, proposal, "no", enqueue=False),
        lambda: begin_thread(VIEWER, proposal, LINE, "me too"),
    ):
        with pytest.raises(NotAllowed):
            action()


def test_what_is_rejected_is_not_approved(proposal: Proposal) -> None:
    Proposal.objects.update(state=ProposalState.REJECTED)
    proposal.refresh_from_db()
    with pytest.raises(MoveRefused):
        approve_proposal(ANNA, proposal)
