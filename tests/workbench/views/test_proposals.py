import re
import shutil

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evolution.actors import SYSTEM
from evolution.loop.repositories import open_repository
from evolution.models import Cluster, Job, Proposal
from evolution.transitions import record
from tests.evolution.measured import make_proposal
from tests.workbench.views.conftest import World, make_diagnosis


def edit(client: Client, world: World, **fields: str) -> int:
    values = {
        "path": "prompts/role.md",
        "content": "knows: q9\r\n",
        "expected_head": world.proposal.head_commit,
    }
    return client.post(world.url(f"proposals/{world.proposal.pk}/edit/"), values | fields).status_code


def test_the_diff_has_line_numbers_and_marked_words(world: World, viewer: Client) -> None:
    page = viewer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()

    assert "knows: q1 q2<ins> q3</ins>" in page


def test_hidden_characters_of_an_edit_are_shown_and_warned_of(world: World, viewer: Client) -> None:
    proposal = make_proposal(world.harness, "knows: q1\u200b\u202e\n".encode(), "sneaky")

    page = viewer.get(world.url(f"proposals/{proposal.pk}/")).content.decode()

    assert "U+200B" in page
    assert "U+202E" in page
    assert "Added lines hold hidden" in page


def test_the_prediction_names_its_cases(world: World, viewer: Client) -> None:
    context = viewer.get(world.url(f"proposals/{world.proposal.pk}/")).context

    view = context["manifest_view"]
    assert [case.title for case in view.expected_fixes] == ["no price"]
    assert [case.title for case in view.at_risk] == ["q1"]


def test_a_proposal_is_approved_at_the_head_that_the_page_showed(world: World, developer: Client) -> None:
    page = developer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()
    assert f'name="reviewed" value="{world.proposal.head_commit}"' in page

    fields = {"reviewed": world.proposal.head_commit}
    developer.post(world.url(f"proposals/{world.proposal.pk}/approve/"), fields)

    world.proposal.refresh_from_db()
    assert (world.proposal.state, world.proposal.decided_by) == ("confirmed", "developer")


def test_another_head_than_the_page_showed_is_not_approved(world: World, developer: Client) -> None:
    for fields in ({}, {"reviewed": world.proposal.base_commit}):
        developer.post(world.url(f"proposals/{world.proposal.pk}/approve/"), fields)

    world.proposal.refresh_from_db()
    assert world.proposal.state == "drafted"


def test_a_proposal_in_a_step_is_not_rejected(world: World, developer: Client) -> None:
    proposal = world.step.proposals.get()

    developer.post(world.url(f"proposals/{proposal.pk}/reject/"), {"reason": "dangerous"})

    proposal.refresh_from_db()
    assert proposal.state == "in_step"


def test_a_rejection_needs_a_reason(world: World, developer: Client) -> None:
    url = world.url(f"proposals/{world.proposal.pk}/")
    assert "reason-reject" in (developer.get(url).content.decode())

    developer.post(f"{url}reject/", {"reason": " "})

    world.proposal.refresh_from_db()
    assert world.proposal.state == "drafted"


def test_an_instruction_goes_to_the_editor(world: World, developer: Client) -> None:
    developer.post(world.url(f"proposals/{world.proposal.pk}/amend/"), {"feedback": "shorter"})

    world.proposal.refresh_from_db()
    assert world.proposal.feedback[0]["text"] == "shorter"
    assert Job.objects.get(kind="draft").target_id == world.proposal.pk


def test_an_empty_instruction_is_refused(world: World, developer: Client) -> None:
    answer = developer.post(world.url(f"proposals/{world.proposal.pk}/amend/"), {"feedback": ""}, follow=True)

    assert [message.level_tag for message in answer.context["messages"]] == ["error"]


def test_an_edit_by_hand_is_a_new_commit(world: World, developer: Client) -> None:
    assert edit(developer, world) == 302

    world.proposal.refresh_from_db()
    repository = open_repository(world.harness)
    assert repository.read_file(world.proposal.head_commit, "prompts/role.md") == b"knows: q9\n"


def test_the_words_of_a_draft_are_of_what_it_was_before_people_edited_it(
    world: World, developer: Client
) -> None:
    Proposal.objects.filter(pk=world.proposal.pk).update(
        manifest={"expected_effect": "mends all", "risks": ["none"]}
    )
    record(SYSTEM, "proposal.committed", world.proposal, commit=world.proposal.head_commit, files=[])
    address = world.url(f"proposals/{world.proposal.pk}/")
    assert "before 1 later commit" not in developer.get(address).content.decode()
    assert edit(developer, world) == 302

    page = developer.get(address).content.decode()

    assert page.count("before 1 later commit:") == 2


def test_a_stale_edit_is_refused_and_keeps_what_was_typed(world: World, developer: Client) -> None:
    values = {"path": "prompts/role.md", "content": "my words", "expected_head": world.proposal.base_commit}

    answer = developer.post(world.url(f"proposals/{world.proposal.pk}/edit/"), values)

    assert answer.status_code == 200
    assert "my words" in answer.content.decode()


def test_an_edit_outside_the_harness_is_refused(world: World, developer: Client) -> None:
    head = world.proposal.head_commit

    for path in ("../../etc/passwd", "/etc/passwd", "README.md"):
        assert edit(developer, world, path=path) == 200

    world.proposal.refresh_from_db()
    assert world.proposal.head_commit == head


def test_a_viewer_edits_nothing(world: World, viewer: Client) -> None:
    assert edit(viewer, world) == 403


def test_a_proposal_is_rejected_with_its_reason(world: World, developer: Client) -> None:
    developer.post(world.url(f"proposals/{world.proposal.pk}/reject/"), {"reason": "too narrow"})

    world.proposal.refresh_from_db()
    assert (world.proposal.state, world.proposal.reason) == ("rejected", "too narrow")


def test_the_list_makes_as_many_queries_for_many_proposals(world: World, viewer: Client) -> None:
    with CaptureQueriesContext(connection) as few:
        viewer.get(world.url("proposals/"))
    for number in range(15):
        fields = {
            "title": f"p{number}",
            "base_commit": "0" * 40,
            "state": "drafted",
            "diagnosis": world.diagnosis,
        }
        Proposal.objects.create(harness=world.harness, **fields)

    with CaptureQueriesContext(connection) as many:
        viewer.get(world.url("proposals/"))

    assert len(many) == len(few)


def test_the_editor_of_a_repository_that_is_gone_leads_back(world: World, developer: Client) -> None:
    shutil.rmtree(open_repository(world.harness).path)

    for answer in (
        developer.get(world.url(f"proposals/{world.proposal.pk}/edit/"), follow=True),
        developer.post(
            world.url(f"proposals/{world.proposal.pk}/edit/"), {"path": "a", "content": ""}, follow=True
        ),
    ):
        assert answer.redirect_chain == [(world.url(f"proposals/{world.proposal.pk}/"), 302)]
        assert "error" in [message.level_tag for message in answer.context["messages"]]


def test_a_proposal_past_review_has_no_editor(world: World, developer: Client) -> None:
    Proposal.objects.filter(pk=world.proposal.pk).update(state="released")

    answer = developer.get(world.url(f"proposals/{world.proposal.pk}/edit/?path=prompts/role.md"))

    assert answer.headers["Location"] == world.url(f"proposals/{world.proposal.pk}/")


def test_cases_at_risk_lead_to_their_newest_result(world: World, viewer: Client) -> None:
    page = viewer.get(world.url(f"proposals/{world.proposal.pk}/"))

    (case,) = page.context["manifest_view"].at_risk
    assert case.evaluation_id == world.step.candidate_evaluation_id
    assert world.url(f"evaluations/{case.evaluation_id}/results/{case.result_id}/") in page.content.decode()


def test_the_diff_stands_above_all_but_the_lines_that_say_why(world: World, developer: Client) -> None:
    Proposal.objects.filter(pk=world.proposal.pk).update(
        summary=f"{world.diagnosis.hypothesis} Changes: one."
    )

    page = developer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()

    places = [page.index(mark) for mark in ('id="why-title"', 'id="what-title"', 'id="changes"')]
    later = [
        page.index(mark) for mark in ('id="threads-title"', 'id="prediction"', 'id="alone"', 'id="commits"')
    ]
    assert places + later == sorted(places + later)
    assert page.count("it does not <em>know</em> the price") == 1


def test_each_commit_of_the_branch_is_listed_with_what_it_changed(world: World, developer: Client) -> None:
    first = world.proposal.head_commit
    edit(developer, world, content="knows: q9\nand more\n", message="by hand")
    world.proposal.refresh_from_db()
    address = world.url(f"proposals/{world.proposal.pk}/")

    page = developer.get(address)
    since = developer.get(f"{address}?since={first}")

    subjects = [commit.info.subject for commit in page.context["commits"]]
    assert subjects == ["by hand", "teach q3"]
    assert f"?since={first}#changes" in page.content.decode()
    assert (since.context["span"].base, since.context["span"].head) == (first, world.proposal.head_commit)
    # A note on a line of a part would be beside another line of the whole.
    assert since.context["diff"].comment_address == ""
    part = developer.get(f"{address}file/?path=prompts/role.md&since={first}")
    assert "q1 q2 q3" in part.content.decode()


def test_only_commits_of_the_branch_are_shown_the_changes_of(world: World, viewer: Client) -> None:
    address = world.url(f"proposals/{world.proposal.pk}/")

    for since in ("main", "--output=x", "0" * 40):
        assert not viewer.get(f"{address}?since={since}").context["span"].is_part


def test_a_request_that_was_answered_is_no_missing_review(world: World, developer: Client) -> None:
    address = world.url(f"proposals/{world.proposal.pk}/")
    fields = {"reviewed": world.proposal.head_commit, "text": "shorter"}
    developer.post(f"{address}request-changes/", fields)
    Proposal.objects.filter(pk=world.proposal.pk).update(
        head_commit=world.harness.selected_commit or "f" * 40
    )

    page = developer.get(address).content.decode()

    assert "requested changes on" in page
    assert "Nobody has reviewed it yet" not in page


def test_a_key_opens_the_form_to_approve_and_approves_nothing_itself(world: World, developer: Client) -> None:
    page = developer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()

    assert re.findall(r"<(\w+)[^>]* data-key=\"a\"", page) == ["summary"]
    assert "approve: opens the form" in page
    assert "assign, tag, ignore" not in page
    assert "assign, tag, ignore" in developer.get(world.url("cases/")).content.decode()


def test_a_description_that_every_prompt_shows_puts_any_case_at_risk(world: World, viewer: Client) -> None:
    manifest = {
        **world.proposal.manifest,
        "shown_everywhere": ["out-of-scope"],
        "at_risk": [],
        "at_risk_total": 0,
    }
    Proposal.objects.filter(pk=world.proposal.pk).update(
        manifest=manifest | {"growth": {}, "measured_on": None}
    )

    page = viewer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()

    assert "any passing case" in page


def test_growth_is_one_line_with_the_rest_folded(world: World, viewer: Client) -> None:
    growth = {"always": [801, 829], "on_demand": [0, 0], "tools": [10, 10]}
    Proposal.objects.filter(pk=world.proposal.pk).update(
        manifest=world.proposal.manifest | {"growth": growth}
    )

    page = viewer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()

    line = re.search(r"<summary>(\+28 tokens in every prompt.*?)</summary>", page)
    assert line
    assert re.sub(r"<[^>]+>", "", line[1]) == "+28 tokens in every prompt (801 → 829, +3.5 %)"


def test_drafts_of_the_same_change_are_told_in_the_list_and_on_their_pages(
    world: World, viewer: Client
) -> None:
    other = make_diagnosis(Cluster.objects.create(harness=world.harness, number=99), world.case)
    world.diagnosis.__class__.objects.filter(pk__in=(other.pk, world.diagnosis.pk)).update(
        path="prompts/role.md", changes=["add a rule"]
    )
    twin = make_proposal(world.harness, b"knows: q1 q3\n", "twin")
    Proposal.objects.filter(pk=twin.pk).update(diagnosis=other, state="drafted")

    listed = viewer.get(world.url("proposals/?state=drafted")).content.decode()
    page = viewer.get(world.url(f"proposals/{twin.pk}/"))

    assert f"same change as #{world.proposal.pk}" in listed
    assert f"same change as #{twin.pk}" not in listed
    assert world.proposal in page.context["twins"]


def test_a_file_that_one_side_has_not_is_one_column_side_by_side(world: World, viewer: Client) -> None:
    proposal = make_proposal(world.harness, b"new\n", "adds a file", "prompts/more.md")

    page = viewer.get(world.url(f"proposals/{proposal.pk}/?layout=split")).content.decode()

    assert 'class="diff split only-new"' in page
