import pytest
from django.test import Client

from evolution.loop.repositories import open_repository
from evolution.models import Harness, Proposal, ReviewComment, ReviewThread
from harness_repo.git.objects import Author
from tests.workbench.views.conftest import SignIn, World

HTMX = {"HX-Request": "true"}
PLACE = {"path": "prompts/role.md", "side": "new", "line": "1"}


@pytest.fixture
def annotator(sign_in: SignIn) -> Client:
    return sign_in("annotator")


def page(client: Client, world: World) -> str:
    return client.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()


def post(client: Client, world: World, deed: str, *, htmx: bool = True, **fields: str) -> str:
    address = world.url(f"proposals/{world.proposal.pk}/{deed}/")
    return client.post(address, fields, headers=HTMX if htmx else {}, follow=True).content.decode()


def test_a_thread_hangs_beside_its_line_with_its_markdown_cleaned(world: World, viewer: Client) -> None:
    ReviewComment.objects.update(text="is **that** so? <script>alert(1)</script> [x](javascript:alert(1))")

    shown = page(viewer, world)

    assert f'id="thread-{world.thread.pk}"' in shown
    assert "<strong>that</strong>" in shown
    assert "<script>alert(1)" not in shown
    assert 'href="javascript' not in shown


def test_a_comment_is_begun_beside_its_line(world: World, annotator: Client) -> None:
    address = world.url(f"proposals/{world.proposal.pk}/comment/")
    form = annotator.get(address, PLACE, headers=HTMX).content.decode()
    assert 'name="line" value="1"' in form

    said = {**PLACE, "text": "why?", "reviewed": world.proposal.head_commit}
    answer = annotator.post(address, said, headers=HTMX).content.decode()

    thread = ReviewThread.objects.latest("pk")
    assert (thread.created_by, thread.line_text) == ("annotator", "knows: q1 q2 q3")
    assert f'id="thread-{thread.pk}"' in answer
    assert '<span id="open-threads" hx-swap-oob="true">2</span>' in answer


@pytest.mark.parametrize("htmx", [True, False])
def test_a_comment_on_a_branch_that_moved_is_kept_in_its_form(
    world: World, annotator: Client, *, htmx: bool
) -> None:
    answer = post(
        annotator, world, "comment", htmx=htmx, **PLACE, text="my words", reviewed=world.proposal.base_commit
    )

    assert "my words</textarea>" in answer
    assert 'role="alert"' in answer
    assert ReviewThread.objects.count() == 1


def test_without_scripts_a_line_number_leads_to_the_form(world: World, annotator: Client) -> None:
    shown = page(annotator, world)
    assert "?at=1-new-1#1-new-1" in shown

    answer = annotator.get(world.url(f"proposals/{world.proposal.pk}/?at=1-new-1"), follow=True)

    assert answer.templates[0].name == "comment.html"
    assert "knows: q1 q2 q3" in answer.content.decode()


@pytest.mark.parametrize("htmx", [True, False])
def test_an_empty_reply_is_refused_in_its_place(world: World, annotator: Client, *, htmx: bool) -> None:
    address = world.url(f"proposals/threads/{world.thread.pk}/reply/")

    answer = annotator.post(address, {"text": " "}, headers=HTMX if htmx else {})

    assert 'role="alert"' in answer.content.decode()
    assert ReviewComment.objects.count() == 1


def test_a_thread_is_answered_and_settled_in_its_place(world: World, annotator: Client) -> None:
    threads = world.url(f"proposals/threads/{world.thread.pk}/")
    assert "it is</p>" in annotator.post(f"{threads}reply/", {"text": "it is"}, headers=HTMX).content.decode()

    answer = annotator.post(f"{threads}resolve/", {"resolved": "1"}, headers=HTMX).content.decode()

    assert "settled by annotator" in answer
    assert world.thread.resolved_by == "annotator"


def test_nobody_changes_the_words_of_another(world: World, annotator: Client) -> None:
    address = world.url(f"proposals/comments/{world.thread.comments.get().pk}/edit/")

    assert annotator.post(address, {"text": "other"}).status_code == 403


def test_a_viewer_says_nothing(world: World, viewer: Client) -> None:
    answer = viewer.post(world.url(f"proposals/{world.proposal.pk}/comment/"), {**PLACE, "text": "x"})

    assert answer.status_code == 403
    assert "Annotators and developers can comment" in post_less_page(viewer, world)


def post_less_page(client: Client, world: World) -> str:
    return client.get(world.url(f"proposals/{world.proposal.pk}/comment/"), PLACE).content.decode()


def test_a_thread_whose_line_is_gone_is_listed_with_the_old_line(world: World, viewer: Client) -> None:
    repository = open_repository(world.harness)
    head = repository.commit(
        world.proposal.branch,
        {"prompts/role.md": b"knows: nothing\n"},
        parent=world.proposal.head_commit,
        author=Author("t", "t@example.org"),
        message="m",
    )
    Proposal.objects.filter(pk=world.proposal.pk).update(head_commit=head)

    shown = page(viewer, world)

    assert '<pre class="old-line">knows: q1 q2 q3</pre>' in shown
    assert "outdated" in shown


def test_an_approval_that_is_stale_is_struck_with_its_reason(world: World, developer: Client) -> None:
    post(developer, world, "approve", reviewed=world.proposal.head_commit)
    assert "Take my approval back" in page(developer, world)
    world.proposal.refresh_from_db()
    fields = {"path": "prompts/role.md", "content": "knows: q1\nq2\n"}
    post(developer, world, "edit", htmx=False, **fields, expected_head=world.proposal.head_commit)

    shown = page(developer, world)

    assert "<s>approved developer" in " ".join(shown.split())
    assert "the branch has moved since" in shown


def test_an_approval_is_taken_back(world: World, developer: Client) -> None:
    post(developer, world, "approve", reviewed=world.proposal.head_commit)
    post(developer, world, "withdraw")

    world.proposal.refresh_from_db()
    assert world.proposal.state == "drafted"


def test_an_author_is_told_that_another_person_has_to_approve(world: World, developer: Client) -> None:
    Harness.objects.update(needs_second_reviewer=True)
    Proposal.objects.update(created_by="developer")

    answer = post(developer, world, "approve", htmx=False, reviewed=world.proposal.head_commit)

    assert "It takes the approval of somebody else, too" in answer
    assert "So far only authors approved" in answer


def test_requested_changes_go_to_the_editor_with_the_open_thread(world: World, developer: Client) -> None:
    post(developer, world, "request-changes", text="Shorter.", reviewed=world.proposal.head_commit)

    world.proposal.refresh_from_db()
    assert world.proposal.state == "drafting"
    assert "is **that** so?" in world.proposal.feedback[0]["text"]
    assert world.proposal.feedback[0]["threads"] == [world.thread.pk]


def test_changes_that_are_refused_keep_their_words(world: World, developer: Client) -> None:
    answer = post(
        developer, world, "request-changes", htmx=False, text="my words", reviewed=world.proposal.base_commit
    )

    assert "my words</textarea>" in answer


def test_the_list_counts_and_orders(world: World, developer: Client) -> None:
    post(developer, world, "approve", reviewed=world.proposal.head_commit)

    answer = developer.get(world.url("proposals/?state=all&order=threads"))

    first = answer.context["rows"][0]
    assert first.proposal == world.proposal
    assert (first.summary.approved_by, first.summary.open_threads) == (["developer"], 1)


def test_a_thread_of_another_harness_is_not_found(world: World, developer: Client) -> None:
    address = f"/h/shop-judge/proposals/threads/{world.thread.pk}/reply/"

    assert developer.post(address, {"text": "x"}).status_code == 404
