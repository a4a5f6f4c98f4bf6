import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from evolution.loop import steps
from evolution.loop.repositories import open_repository
from evolution.models import DatasetVersion, Diagnosis, Evaluation, Harness, Proposal, Step
from tests.evolution.measured import DEV, make_proposal
from tests.workbench.views.conftest import World


def test_a_step_starts_from_the_ticked_proposals(world: World, developer: Client) -> None:
    Step.objects.filter(pk=world.step.pk).update(state="rolled_back")
    Proposal.objects.filter(pk=world.proposal.pk).update(state="confirmed")

    answer = developer.post(world.url("steps/start/"), {"proposals": [world.proposal.pk]})

    assert answer.headers["Location"] == world.url("steps/2/")
    assert [p.pk for p in Step.objects.get(number=2).proposals.all()] == [world.proposal.pk]


def test_a_step_needs_a_proposal(world: World, developer: Client) -> None:
    developer.post(world.url("steps/start/"), {"proposals": [world.proposal.pk, "x"]})

    assert Step.objects.count() == 1


def test_promoting_moves_main_to_the_candidate(world: World, operator: Client) -> None:
    operator.post(world.url("steps/1/decide/"), {"decision": "promote", "reason": "better"})

    world.step.refresh_from_db()
    assert world.step.state == "promoted"
    assert open_repository(world.harness).resolve("main") == world.step.candidate_commit


def test_a_developer_does_not_promote(world: World, developer: Client) -> None:
    answer = developer.post(world.url("steps/1/decide/"), {"decision": "promote", "reason": "better"})

    world.step.refresh_from_db()
    assert (answer.status_code, world.step.state) == (403, "evaluated")


@pytest.mark.parametrize(
    ("decision", "state"), [("revise", "revised"), ("roll_back", "rolled_back"), ("stop", "stopped")]
)
def test_the_other_decisions_close_the_step(
    world: World, operator: Client, decision: str, state: str
) -> None:
    operator.post(world.url("steps/1/decide/"), {"decision": decision, "reason": "because"})

    world.step.refresh_from_db()
    assert (world.step.state, world.step.reason) == (state, "because")


@pytest.mark.parametrize("decision", ["revise", "roll_back", "stop"])
def test_the_other_decisions_need_a_reason(world: World, operator: Client, decision: str) -> None:
    choices = {choice.name: choice for choice in operator.get(world.url("steps/1/")).context["choices"]}

    operator.post(world.url("steps/1/decide/"), {"decision": decision, "reason": " "})

    world.step.refresh_from_db()
    assert (world.step.state, choices[decision].needs_reason) == ("evaluated", True)


def test_an_unknown_decision_is_refused(world: World, operator: Client) -> None:
    operator.post(world.url("steps/1/decide/"), {"decision": "explode"})

    world.step.refresh_from_db()
    assert world.step.state == "evaluated"


def test_a_button_that_is_not_allowed_says_why(world: World, developer: Client) -> None:
    choices = {choice.name: choice for choice in developer.get(world.url("steps/1/")).context["choices"]}

    assert choices["promote"].obstacle == "This needs an operator."
    assert choices["revise"].obstacle == ""


def test_an_unmeasured_step_can_only_be_evaluated(world: World, operator: Client) -> None:
    Step.objects.filter(pk=world.step.pk).update(state="ready", verdict=None)

    page = operator.get(world.url("steps/1/")).content.decode()

    assert "Evaluate the step first." in page
    assert world.url("steps/1/evaluate/") in page


def test_a_running_step_is_followed(world: World, viewer: Client) -> None:
    Step.objects.filter(pk=world.step.pk).update(state="evaluating")

    assert "every 1500ms" in viewer.get(world.url("steps/1/")).content.decode()


def test_the_verdict_is_shown_with_its_figures_and_flips(world: World, viewer: Client) -> None:
    answer = viewer.get(world.url("steps/1/"))

    assert [(flip, n) for flip, _name, n in answer.context["flips"]] == [
        ("fixed", 8),
        ("still_failing", 2),
        ("still_passing", 2),
    ]
    assert "+66.7" in answer.content.decode()


def test_a_step_on_an_old_base_says_so(world: World, viewer: Client) -> None:
    Step.objects.filter(pk=world.step.pk).update(base_commit="1" * 40)

    assert "no longer the base" in viewer.get(world.url("steps/1/")).content.decode()


def test_a_step_on_an_older_dataset_says_so_until_it_is_decided(world: World, viewer: Client) -> None:
    assert "older dataset" not in viewer.get(world.url("steps/1/")).content.decode()
    dataset = Evaluation.objects.get(candidate_of=world.step).dataset_version.dataset
    newer = DatasetVersion.objects.create(dataset=dataset, number=99, digest="9" * 64)

    page = viewer.get(world.url("steps/1/")).content.decode()

    assert "older dataset" in page
    assert str(newer) in page
    Step.objects.filter(pk=world.step.pk).update(state="rolled_back")
    assert "older dataset" not in viewer.get(world.url("steps/1/")).content.decode()


def test_the_list_makes_as_many_queries_for_many_steps(world: World, viewer: Client) -> None:
    with CaptureQueriesContext(connection) as few:
        viewer.get(world.url("steps/"))
    for number in range(2, 12):
        commits = {"base_commit": "1" * 40, "candidate_commit": "2" * 40}
        Step.objects.create(harness=world.harness, number=number, branch="b", created_by="x", **commits)

    with CaptureQueriesContext(connection) as many:
        viewer.get(world.url("steps/"))

    assert len(many) == len(few)


@pytest.mark.parametrize("odd", ["²", "9" * 5000, "9" * 18])
def test_a_step_from_what_is_no_proposal_is_refused(world: World, developer: Client, odd: str) -> None:
    developer.post(world.url("steps/start/"), {"proposals": [odd]})

    assert Step.objects.count() == 1


def test_a_measured_step_is_not_evaluated_again(world: World, developer: Client) -> None:
    address, button = world.url("steps/1/"), world.url("steps/1/evaluate/")
    assert button not in developer.get(address).content.decode()

    Evaluation.objects.filter(candidate_of=world.step).update(state="partial")

    assert button in developer.get(address).content.decode()


def test_a_running_step_says_once_what_to_wait_for(world: World, developer: Client) -> None:
    Step.objects.filter(pk=world.step.pk).update(state="evaluating")
    Evaluation.objects.filter(candidate_of=world.step).update(state="running")

    page = developer.get(world.url("steps/1/")).content.decode()

    assert page.count("or cancel them.</p>") == 1
    assert page.count("Cancel evaluation") == 1


def test_cancelling_from_a_step_comes_back_to_it(world: World, developer: Client) -> None:
    Step.objects.filter(pk=world.step.pk).update(state="evaluating")
    Evaluation.objects.filter(candidate_of=world.step).update(state="running")

    cancel = world.url(f"evaluations/{world.step.candidate_evaluation_id}/cancel/")
    answer = developer.post(cancel, {"step": 1}, follow=True)

    assert answer.redirect_chain[-1][0] == world.url("steps/1/")
    assert "An evaluation was cancelled, so there is no verdict." in answer.content.decode()


@pytest.mark.parametrize(
    ("decision", "words"),
    [
        ("promote", "release/2 is live: "),
        ("revise", "its proposals wait for their reviewers again"),
        ("roll_back", "the live version stays"),
        ("stop", "release/1 is live: "),
    ],
)
def test_a_decision_says_what_it_did(world: World, operator: Client, decision: str, words: str) -> None:
    fields = {"decision": decision, "reason": "because"}
    answer = operator.post(world.url("steps/1/decide/"), fields, follow=True)

    (message,) = answer.context["messages"]
    assert words in str(message)
    assert str(message) in answer.content.decode()


def test_stop_names_the_version_that_will_be_live(world: World, operator: Client) -> None:
    def explain() -> str:
        choices = {choice.name: choice for choice in operator.get(world.url("steps/1/")).context["choices"]}
        return str(choices["stop"].help)

    assert explain().startswith(f"The evolution ends with the baseline ({world.step.base_commit[:8]}).")
    assert "main stays as it is" in explain()


def test_proposals_in_a_step_already_lead_to_it(world: World, developer: Client) -> None:
    taken = world.step.proposals.get()

    answer = developer.post(world.url("steps/start/"), {"proposals": [taken.pk]}, follow=True)

    assert answer.redirect_chain[-1][0] == world.url("steps/1/")
    assert "in step 1 already" in answer.content.decode()


def test_no_step_is_offered_while_one_is_undecided(world: World, developer: Client) -> None:
    Proposal.objects.filter(pk=world.proposal.pk).update(state="confirmed")

    page = developer.get(world.url("steps/")).content.decode()

    assert "Step 1 comes first" in page
    assert world.url("steps/start/") not in page


def test_an_idle_step_hears_of_another_tab(world: World, viewer: Client) -> None:
    seen = viewer.get(world.url("steps/1/")).context["stamp"]
    Step.objects.filter(pk=world.step.pk).update(state="evaluating")

    headers = {"HX-Request": "true", "HX-Target": "watch"}
    assert "stale" in viewer.get(world.url("steps/1/"), {"seen": seen}, headers=headers).headers["HX-Trigger"]


def test_the_policy_is_told_in_words(world: World, viewer: Client) -> None:
    page = viewer.get(world.url("steps/1/")).content.decode()

    assert "Significance level" in page
    assert "&quot;alpha&quot;" not in page


def test_a_step_says_of_each_proposal_who_approved_it_and_how_it_does_alone(
    world: World, developer: Client
) -> None:
    proposal, step = world.step.proposals.get(), world.step
    fields = {
        "head_commit": step.candidate_commit,
        "alone_base": step.base_evaluation,
        "alone_candidate": step.candidate_evaluation,
    }
    Proposal.objects.filter(pk=proposal.pk).update(**fields)
    proposal.reviews.create(reviewer="anna", verdict="approved", commit=step.candidate_commit)
    page = developer.get(world.url("steps/1/"))
    (inside,) = page.context["inside"]
    assert [review.reviewer for review in inside.approvals] == ["anna"]
    assert inside.alone.candidate.accuracy > inside.alone.base.accuracy
    assert "approved by" in page.content.decode()
    assert page.context["diff"].files[0].path == "prompts/role.md"


def free_the_steps(world: World) -> None:
    """Have a new step be possible, and the world's proposal approved."""
    Step.objects.filter(pk=world.step.pk).update(state="rolled_back")
    Proposal.objects.filter(pk=world.proposal.pk).update(state="confirmed")


def test_a_proposal_whose_diagnosis_is_rejected_is_not_offered_and_says_why(
    world: World, developer: Client
) -> None:
    free_the_steps(world)
    Diagnosis.objects.filter(pk=world.diagnosis.pk).update(state="rejected")
    # Ticked by hand it is not taken for chosen either.
    for query in ("", f"?chosen=1&proposals={world.proposal.pk}"):
        answer = developer.get(world.url(f"steps/{query}"))
        assert answer.context["chosen"] == []
        assert "reject the proposal, too, or reopen the diagnosis" in answer.content.decode()
    developer.post(world.url("steps/start/"), {"proposals": [world.proposal.pk]})
    assert Step.objects.count() == 1


def test_what_repeats_another_proposal_is_not_ticked_by_itself(world: World, developer: Client) -> None:
    free_the_steps(world)
    again = make_proposal(world.harness, b"knows: q1 q2 q3\n", "teach q3 again")
    answer = developer.get(world.url("steps/"))
    assert [proposal.pk for proposal in answer.context["chosen"]] == [world.proposal.pk]
    assert f"same change as #{world.proposal.pk}" in answer.content.decode()
    ticked = world.url(f"steps/?chosen=1&proposals={again.pk}")
    assert developer.get(ticked).context["chosen"] == [again]


def test_a_proposal_says_which_other_one_changes_the_same(world: World, viewer: Client) -> None:
    again = make_proposal(world.harness, b"knows: q1 q2 q3\n", "teach q3 again")
    page = viewer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()
    assert f"same change as #{again.pk}" in page


def test_a_rule_that_another_proposal_adds_is_named(world: World, viewer: Client) -> None:
    other = make_proposal(world.harness, b"hi\n", "more", "hooks/notes.txt")
    rules = {"rules": {"added": [{"text": "Be kind."}]}}
    Proposal.objects.filter(pk__in=[other.pk, world.proposal.pk]).update(manifest=rules)
    page = viewer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()
    assert f"adds the same rule as #{other.pk}" in page


def put_two_in(world: World) -> tuple[Proposal, Proposal]:
    """A second proposal in the world's step, which is measured."""
    first = world.step.proposals.get()
    more = make_proposal(world.harness, b"hi\n", "more", "hooks/notes.txt")
    steps.rebuild_step(DEV, world.step, adding=more)
    return first, more


def test_taking_out_of_a_step_with_a_verdict_asks_first(world: World, developer: Client) -> None:
    was = (world.step.base_evaluation, world.step.candidate_evaluation, world.step.verdict)
    _first, more = put_two_in(world)
    fields = ("base_evaluation", "candidate_evaluation", "verdict")
    Step.objects.filter(pk=world.step.pk).update(state="evaluated", **dict(zip(fields, was, strict=True)))
    address = world.url(f"steps/1/take-out/{more.pk}/")
    assert 'name="sure"' in developer.get(world.url("steps/1/")).content.decode()

    refused = developer.post(address, follow=True)
    assert "the step has a verdict" in refused.content.decode().lower()
    assert world.step.proposals.count() == 2
    developer.post(address, {"sure": "1"})
    assert world.step.proposals.count() == 1


def test_putting_into_a_step_with_a_verdict_asks_first(world: World, developer: Client) -> None:
    more = make_proposal(world.harness, b"hi\n", "more", "hooks/notes.txt")
    address = world.url(f"steps/1/put-in/{more.pk}/")
    developer.post(address)
    assert world.step.proposals.count() == 1
    developer.post(address, {"sure": "1"})
    assert world.step.proposals.count() == 2


def test_a_step_names_what_was_measured_of_it_before_and_takes_that_up_again(
    world: World, developer: Client
) -> None:
    measured = world.step.candidate_evaluation
    assert measured is not None
    _first, more = put_two_in(world)
    page = developer.get(world.url("steps/1/"))
    (build,) = page.context["earlier"]
    assert (build.evaluation, len(build.proposals)) == (measured, 1)
    assert world.url(f"evaluations/{measured.pk}/") in page.content.decode()
    assert "Nothing is measured yet" in page.content.decode()

    developer.post(world.url(f"steps/1/take-out/{more.pk}/"))
    page = developer.get(world.url("steps/1/"))
    assert (page.context["measured"], page.context["earlier"]) == ([measured], [])
    assert "This version is measured already" in page.content.decode()
    assert "Nothing is measured yet" not in page.content.decode()


def test_promoting_waits_for_the_second_persons_word(world: World, operator: Client) -> None:
    Harness.objects.update(needs_second_reviewer=True)
    choices = {choice.name: choice for choice in operator.get(world.url("steps/1/")).context["choices"]}
    assert "has no approval of a developer who is not its author" in choices["promote"].obstacle
    operator.post(world.url("steps/1/decide/"), {"decision": "promote", "reason": "better"})
    assert Step.objects.get().state == "evaluated"


def test_who_approved_and_is_no_developer_now_is_marked(world: World, developer: Client) -> None:
    proposal = world.step.proposals.get()
    proposal.reviews.create(reviewer="developer", verdict="approved", commit=proposal.head_commit)
    page = developer.get(world.url("steps/1/"))
    assert page.context["inside"][0].barred == frozenset()
    User.objects.get(username="developer").groups.clear()
    page = developer.get(world.url("steps/1/"))
    assert page.context["inside"][0].barred == {"developer"}
    assert "no developer here now" in page.content.decode()


def test_what_others_have_already_is_said_to_bring_nothing(world: World, viewer: Client) -> None:
    _first, more = put_two_in(world)
    assert viewer.get(world.url("steps/1/")).context["idle"] == set()
    again = make_proposal(world.harness, b"hi\n", "the same", "hooks/notes.txt")
    steps.rebuild_step(DEV, world.step, adding=again)
    page = viewer.get(world.url("steps/1/"))
    assert page.context["idle"] == {more.pk, again.pk}
    assert "brings nothing of its own" in page.content.decode()
