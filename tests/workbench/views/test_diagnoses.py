"""Diagnoses on the page of their cluster: ranked, with what they rest on, decided about, and asked for again."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries, Settings

from evolution.models import Cluster, DatasetCase, Diagnosis, Exchange, FailureCase, Job, Proposal
from evolution.queries.diagnoses import Answer
from tests.evolution.intake import make_failure
from tests.workbench.views.conftest import World, make_diagnosis, make_exchange
from workbench.answer_view import compare_answers


@pytest.fixture
def blamed(world: World) -> Diagnosis:
    """A second hypothesis of the same answer, that the judge was wrong; its case is in the dataset."""
    FailureCase.objects.filter(pk=world.case.pk).update(dataset_case=DatasetCase.objects.get(key="q1"))
    second = make_diagnosis(world.cluster, world.case)
    fields = {"exchange": world.exchange, "rank": 2, "part": "judge", "category": "judge_error", "path": ""}
    Diagnosis.objects.filter(pk=second.pk).update(**fields)
    second.refresh_from_db()
    return second


def test_hypotheses_stand_in_their_order_with_what_was_shown(
    world: World, blamed: Diagnosis, viewer: Client
) -> None:
    page = viewer.get(world.url("clusters/1/")).content.decode()

    assert page.index(f'id="diagnosis-{world.diagnosis.pk}"') < page.index(f'id="diagnosis-{blamed.pk}"')
    assert "judge wrong" in page
    assert "turn 4, get_price result: 3,210 characters cut" in page
    assert "turns 5-9 left out" in page
    assert "0.0125 USD" in page


def test_the_newest_answer_is_on_top_and_what_failed_since_is_told(world: World, viewer: Client) -> None:
    make_exchange(world.cluster, world.case, error="the model is away", replies=[])

    context = viewer.get(world.url("clusters/1/")).context

    assert [len(view.hypotheses) for view in context["newest_answers"]] == [0, 1]
    assert context["earlier_answers"] == []


def test_many_answers_take_no_more_queries_than_one(
    world: World, blamed: Diagnosis, viewer: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    url = world.url("clusters/1/")
    # Something is kept by the process after the first.
    viewer.get(url)
    with CaptureQueriesContext(connection) as first:
        assert viewer.get(url).status_code == 200
    for part in ("prompt", "judge") * 4:
        again = make_diagnosis(world.cluster, world.case)
        Diagnosis.objects.filter(pk=again.pk).update(part=part)
    with django_assert_max_num_queries(len(first)):
        page = viewer.get(url)
    assert sum(len(view.hypotheses) for view in page.context["earlier_answers"]) == 9


def test_many_labels_take_no_more_queries_than_one(
    world: World, blamed: Diagnosis, developer: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    url = world.url(f"diagnoses/{blamed.pk}/relabel/")
    with CaptureQueriesContext(connection) as first:
        assert developer.get(url).status_code == 200
    for key in ("q2", "q3", "q4"):
        tied = DatasetCase.objects.get(key=key)
        other = make_failure(world.harness, key, cluster=world.cluster, dataset_case=tied)
        blamed.evidence.append({"case": other.pk, "turn": 0, "quote": "x", "verified": True})
    blamed.save()
    with django_assert_max_num_queries(len(first)):
        page = developer.get(url).content.decode()
    assert all(key in page for key in ("q1", "q2", "q3", "q4"))


def test_what_is_not_the_harnesss_fault_is_offered_no_draft(
    world: World, blamed: Diagnosis, developer: Client
) -> None:
    page = developer.get(world.url("clusters/1/")).content.decode()

    assert f"/diagnoses/{blamed.pk}/draft/" not in page
    assert page.count(f"/diagnoses/{blamed.pk}/handle/") == 2


def test_cases_go_to_the_judges_calibration_and_back(
    world: World, blamed: Diagnosis, developer: Client
) -> None:
    fields = {"handling": "calibration", "reason": "the reply was right", "cases": [world.case.pk]}

    developer.post(world.url(f"diagnoses/{blamed.pk}/handle/"), fields)

    blamed.refresh_from_db()
    world.case.refresh_from_db()
    assert (blamed.state, blamed.handled_as) == ("accepted", "calibration")
    assert world.case.dataset_case is not None
    assert world.case.dataset_case.split == "calibration"
    page = developer.get(world.url("clusters/1/")).content.decode()
    assert "the reply was right" in page

    developer.post(world.url(f"diagnoses/{blamed.pk}/reopen/"), {"reason": "no, it was wrong"})

    blamed.refresh_from_db()
    world.case.refresh_from_db()
    assert (blamed.state, blamed.handled_as) == ("open", "")
    assert world.case.dataset_case.key == "q1"


def test_a_cluster_is_put_aside_with_its_diagnosis(
    world: World, blamed: Diagnosis, developer: Client
) -> None:
    fields = {"handling": "ignored", "reason": "no model can"}

    developer.post(world.url(f"diagnoses/{blamed.pk}/handle/"), fields)

    world.cluster.refresh_from_db()
    assert world.cluster.state == "ignored"


def test_labels_that_were_changed_are_corrected_under_their_key(
    world: World, blamed: Diagnosis, developer: Client
) -> None:
    Diagnosis.objects.filter(pk=blamed.pk).update(part="label")
    page = developer.get(world.url(f"diagnoses/{blamed.pk}/relabel/")).content.decode()
    assert f'name="facts-{world.case.pk}"' in page
    pk = world.case.pk
    fields = {
        "handling": "relabelled",
        "reason": "the price had changed",
        f"facts-{pk}": "costs 89 yuan | 89\r\n",
        f"forbidden-{pk}": "",
        f"split-{pk}": "dev",
    }

    answer = developer.post(world.url(f"diagnoses/{blamed.pk}/handle/"), fields, follow=True)

    (told,) = answer.context["messages"]
    dataset = DatasetCase.objects.filter(key="q1")[0].version.dataset
    assert f"q1 ({dataset} v2)" in str(told)
    assert f"case {pk}" in str(told)
    newest = DatasetCase.objects.filter(key="q1").order_by("-version__number")[0]
    assert newest.expected["facts"] == [{"fact": "costs 89 yuan", "accept": ["89"]}]
    assert newest.version.number == 2
    blamed.refresh_from_db()
    assert blamed.handled_as == "relabelled"


def test_labels_as_they_are_correct_nothing(world: World, blamed: Diagnosis, developer: Client) -> None:
    Diagnosis.objects.filter(pk=blamed.pk).update(part="label")
    pk = world.case.pk
    same = {f"facts-{pk}": "", f"forbidden-{pk}": "", f"split-{pk}": "dev"}

    developer.post(
        world.url(f"diagnoses/{blamed.pk}/handle/"), {"handling": "relabelled", "reason": "r", **same}
    )

    blamed.refresh_from_db()
    assert blamed.handled_as == ""
    assert not DatasetCase.objects.filter(version__number=2).exists()


def test_a_person_blames_another_part(world: World, blamed: Diagnosis, developer: Client) -> None:
    developer.post(world.url(f"diagnoses/{blamed.pk}/amend/"), {"hypothesis": "the prompt", "part": "prompt"})

    blamed.refresh_from_db()
    assert (blamed.part, blamed.changes) == ("prompt", ["say the price"])


def test_a_model_that_cannot_be_asked_is_said_at_once(world: World, developer: Client) -> None:
    answer = developer.post(world.url("clusters/1/diagnose/"), {"model": "nobody-knows"}, follow=True)

    assert "rehearsal-diagnoser" in answer.content.decode()
    assert not Job.objects.exists()


def test_another_model_is_asked_by_name(world: World, developer: Client, settings: Settings) -> None:
    settings.LLM_ENDPOINTS = [{"base_url": "http://localhost:9/v1"}]
    settings.LLM_MODEL_DIAGNOSER = settings.LLM_MODEL_EDITOR = "small"

    developer.post(world.url("clusters/1/diagnose/"), {"model": "large"})
    developer.post(world.url(f"diagnoses/{world.diagnosis.pk}/draft/"), {"model": "large"})

    jobs = Job.objects.order_by("pk").values_list("kind", "parameters__model")
    assert list(jobs) == [("diagnose", "large"), ("draft", "large")]
    assert world.diagnosis.proposals.filter(model="large").exists()


def test_two_answers_are_set_side_by_side(world: World, viewer: Client) -> None:
    other = make_diagnosis(world.cluster, world.case)
    Diagnosis.objects.filter(pk=other.pk).update(part="tool", path="tools/x.yaml")
    make_exchange(world.cluster, world.case, error="gone", replies=[])

    context = viewer.get(world.url("clusters/1/diagnoses/compare/")).context
    compared = context["compared"]

    assert (context["first"].exchange, context["second"].exchange) == (world.exchange, other.exchange)
    assert (compared.same_part, compared.same_category) == (False, True)
    assert (compared.both_cases, compared.all_cases, compared.both_quotes) == (1, 1, 1)


def test_an_answer_about_another_cluster_is_not_compared(world: World, viewer: Client) -> None:
    address = world.url("clusters/1/diagnoses/compare/")

    assert viewer.get(f"{address}?first=99999").status_code == 404
    assert "no two answers" in viewer.get(address).content.decode()


def test_two_drafts_are_set_side_by_side_and_against_each_other(world: World, viewer: Client) -> None:
    other = world.step.proposals.get()
    Proposal.objects.filter(pk=other.pk).update(diagnosis=world.diagnosis, model="large")
    make_exchange(world.cluster, world.case, purpose="draft", proposal=other, cost="0.5", seconds=3)

    both = viewer.get(world.url("proposals/compare/"))
    between = viewer.get(world.url(f"proposals/compare/?first={other.pk}&show=between"))

    drafts = both.context["drafts"]
    assert {draft.proposal.pk for draft in drafts} == {other.pk, world.proposal.pk}
    assert "0.500 USD" in both.content.decode()
    assert both.context["is_one_diagnosis"]
    anchors = [file.anchor for draft in drafts for file in draft.diff.files]
    assert len(set(anchors)) == len(anchors) == 2
    # What the first teaches and the second does not, from head to head.
    assert between.context["between"].files[0].path == "prompts/role.md"


@pytest.mark.parametrize("others", [True, False])
@pytest.mark.parametrize("first", ["99999999999999999999", "a"])
@pytest.mark.parametrize("page", ["proposals/compare/", "clusters/1/diagnoses/compare/"])
def test_ids_that_are_none_are_no_choice(
    world: World, viewer: Client, page: str, first: str, *, others: bool
) -> None:
    if not others:
        Proposal.objects.exclude(pk=world.proposal.pk).delete()

    answer = viewer.get(world.url(f"{page}?first={first}&second={first}x"))

    assert answer.status_code == 200


def test_the_page_of_a_draft_leads_to_its_question_and_its_rival(world: World, viewer: Client) -> None:
    other = world.step.proposals.get()
    Proposal.objects.filter(pk=other.pk).update(diagnosis=world.diagnosis, model="large")
    asked = make_exchange(world.cluster, world.case, purpose="draft", proposal=world.proposal)

    page = viewer.get(world.url(f"proposals/{world.proposal.pk}/")).content.decode()

    assert world.url(f"exchanges/{asked.pk}/") in page
    assert f"compare/?first={other.pk}&amp;second={world.proposal.pk}" in page


def test_each_form_of_a_hypothesis_says_what_it_does(world: World, developer: Client) -> None:
    page = developer.get(world.url("clusters/1/")).content.decode()

    form = page[page.index(f"/diagnoses/{world.diagnosis.pk}/reject/") :]
    button = form[form.index("<button") : form.index("</button>")]
    assert "btn-danger" in button
    assert button.endswith(">Reject")


def test_a_person_says_that_the_harness_is_not_to_blame(world: World, developer: Client) -> None:
    world.diagnosis.proposals.update(state="rejected")
    assert "Not the harness" in developer.get(world.url("clusters/1/")).content.decode()
    fields = {"part": "judge", "hypothesis": "The judge misread it.", "changes": ""}

    developer.post(world.url(f"diagnoses/{world.diagnosis.pk}/amend/"), fields)

    diagnosis = Diagnosis.objects.get(pk=world.diagnosis.pk)
    assert (diagnosis.part, diagnosis.path, diagnosis.changes) == ("judge", "", [])


def test_the_file_to_blame_is_amended_within_the_harness(world: World, developer: Client) -> None:
    fields = {"hypothesis": "x", "part": world.diagnosis.part}
    address = world.url(f"diagnoses/{world.diagnosis.pk}/amend/")

    developer.post(address, fields | {"path": "prompts/other.md"})
    assert Diagnosis.objects.get(pk=world.diagnosis.pk).path == "prompts/other.md"

    for bad in ("prompts/../../x", "/etc/passwd", "README.md", "prompts/" + "x" * 400):
        developer.post(address, fields | {"path": bad})
        assert Diagnosis.objects.get(pk=world.diagnosis.pk).path == "prompts/other.md"


def test_what_was_held_back_is_told_with_its_number(world: World, viewer: Client) -> None:
    world.exchange.shown |= {"members": 9, "allowed": 6, "round": 2}
    world.exchange.save()

    page = viewer.get(world.url("clusters/1/")).content.decode()

    assert "of 9 open cases" in page
    assert "3 held out for step 2" in page


def test_a_hypothesis_tells_of_how_many_cases_it_speaks(world: World, viewer: Client) -> None:
    assert "explains 1 of" in viewer.get(world.url("clusters/1/")).content.decode()


def test_no_button_asks_another_model_where_there_is_no_other(world: World, developer: Client) -> None:
    page = developer.get(world.url("clusters/1/")).content.decode()

    assert "With another model" not in page


def test_the_same_change_for_another_cluster_is_told(world: World, viewer: Client) -> None:
    other = Cluster.objects.create(harness=world.harness, number=99, name="the same elsewhere")
    twin = make_diagnosis(other, world.case)
    changes = {"changes": ["add a rule"], "path": "prompts/role.md"}
    Diagnosis.objects.filter(pk__in=(twin.pk, world.diagnosis.pk)).update(**changes)
    proposal = Proposal.objects.create(
        harness=world.harness, diagnosis=twin, title="twin", base_commit="f" * 40
    )
    Proposal.objects.filter(pk=proposal.pk).update(state="drafted")

    page = viewer.get(world.url("clusters/1/")).content.decode()

    assert "The same change of the same file" in page
    assert world.url(f"proposals/{proposal.pk}/") in page


def test_answers_are_matched_by_their_words_before_their_file(world: World) -> None:
    first = Answer(None, [world.diagnosis])
    others = [make_diagnosis(world.cluster, world.case) for _ in range(2)]
    Diagnosis.objects.filter(pk=others[1].pk).update(rank=2)
    Diagnosis.objects.filter(pk=others[0].pk).update(hypothesis="something else")
    second = Answer(None, list(Diagnosis.objects.filter(pk__in=[one.pk for one in others]).order_by("rank")))

    assert compare_answers(first, second).first[0][1] == 2


def test_a_choice_that_is_no_number_compares_what_there_is(world: World, viewer: Client) -> None:
    for query in ("first=99999999999999999999&second=a", "first=-1", f"first={world.proposal.pk}&second=a"):
        assert viewer.get(world.url(f"proposals/compare/?{query}")).status_code in {200, 404}


def test_what_a_model_wrote_amiss_breaks_no_page(world: World, viewer: Client) -> None:
    amiss = {
        "evidence": ["words", {"case": [1], "quote": "q"}],
        "first_wrong_turns": [{"turn": 1}, {"case": "x"}, 3],
    }
    Diagnosis.objects.filter(pk=world.diagnosis.pk).update(**amiss)
    other = make_exchange(world.cluster, world.case)
    Exchange.objects.filter(pk__in=(world.exchange.pk, other.pk)).update(shown={"cases": None})

    ids = f"first={world.exchange.pk}&second={other.pk}"
    for page in ("clusters/1/", f"clusters/1/diagnoses/compare/?{ids}"):
        assert viewer.get(world.url(page)).status_code == 200, page
