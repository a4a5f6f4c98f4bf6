"""What the page of one evaluation says while it runs and after; its buttons are in test_evaluations."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from evolution.models import Evaluation, EvaluationUsage
from tests.workbench.views.conftest import World


@pytest.fixture
def evaluation(world: World) -> Evaluation:
    assert world.step.base_evaluation is not None
    return world.step.base_evaluation


def change(evaluation: Evaluation, **fields: object) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(**fields)


def read(world: World, client: Client, evaluation: Evaluation, part: str = "") -> str:
    """The page, or what htmx gets that replaces a part of it."""
    headers = {"HX-Request": "true", "HX-Target": part} if part else {}
    return client.get(world.url(f"evaluations/{evaluation.pk}/"), headers=headers).content.decode()


def test_means_have_their_intervals(world: World, viewer: Client, evaluation: Evaluation) -> None:
    page = read(world, viewer, evaluation)

    # Wilson's of two in twelve
    assert "4.7&nbsp;–&nbsp;44.8" in page


def test_spending_is_shown_by_role_and_an_unknown_price_is_said(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    evaluation.usage.all().delete()
    for role, made, cached, unpriced in (("policy", 30, 900, 0), ("judge", 7, 27, 7)):
        EvaluationUsage.objects.create(
            evaluation=evaluation, role=role, model=f"{role}-<b>", made=made, cached=cached, cost=Decimal("1.5"),
            unpriced=unpriced,
        )  # fmt: skip

    page = read(world, viewer, evaluation)

    assert "37 of 964 calls made" in page
    assert "policy-&lt;b&gt;" in page
    assert "1.50 USD" in page
    assert page.count("price unknown") == 1 + page.partition('id="details"')[2].count("price unknown")


def test_a_running_evaluation_says_its_rate_and_what_is_left(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    evaluation.results.filter(case__key__in=["q1", "q2", "q3"]).delete()
    now = timezone.now()
    change(evaluation, state="running", started_at=now - timedelta(minutes=5), heartbeat_at=now)

    part = read(world, viewer, evaluation, "progress")

    assert "0.3 per second" in part
    assert "10 s left" in part
    assert "Nobody works on this" not in part
    assert "<html" not in part


def test_the_first_page_of_results_follows_a_running_evaluation(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    evaluation.results.all().delete()
    change(evaluation, state="running", heartbeat_at=timezone.now())
    page = read(world, viewer, evaluation).partition('id="results"')[2].partition(">")[0]
    filtered = viewer.get(world.url(f"evaluations/{evaluation.pk}/?outcome=errors")).content.decode()
    change(evaluation, state="finished")
    ended = read(world, viewer, evaluation)

    assert 'hx-trigger="every 10000ms"' in page
    for other in (filtered, ended):
        assert "hx-trigger" not in other.partition('id="results"')[2].partition(">")[0]


def test_what_a_budget_cut_off_is_said_to_be_not_measured(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    cut = evaluation.results.filter(case__key__in=["q3", "q4", "q5"])
    cut.update(accuracy=None, effectiveness=None, error_kind="budget", run_status="budget")
    change(evaluation, state="partial", stopped_by="calls")

    page = read(world, viewer, evaluation)

    assert "9 of 12 measured (75 %)" in page
    assert "3 not measured" in page
    assert '<option value="budget">stopped by the budget (3)' in page
    assert "12 / 12" not in page
    assert "the model failed" not in page


def test_amounts_are_in_the_currency_that_they_were_counted_in(
    world: World, viewer: Client, evaluation: Evaluation, settings: Settings
) -> None:
    evaluation.usage.all().delete()
    evaluation.usage.create(role="policy", model="m", made=1, cost=Decimal("1.5"))
    evaluation.results.update(cost=Decimal("0.25"))
    change(evaluation, currency="EUR", budget={"money": 4})
    settings.MODEL_CURRENCY = "CNY"

    page = read(world, viewer, evaluation)
    listed = viewer.get(world.url("evaluations/")).content.decode()
    result = viewer.get(world.url(f"evaluations/{evaluation.pk}/results/{evaluation.results.all()[0].pk}/"))

    for shown in ("1.50 EUR", "1.50 EUR / 4.00 EUR", "0.250 EUR"):
        assert shown in page
    assert "0.250 EUR" in listed
    assert "0.250 EUR" in result.content.decode()
    assert " CNY" not in page


def test_passing_in_all_trials_says_what_a_pass_is(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    change(evaluation, repeats=2)

    assert "a pass has full marks in accuracy and in effectiveness" in read(world, viewer, evaluation)


def test_a_run_that_nobody_works_on_says_so(world: World, viewer: Client, evaluation: Evaluation) -> None:
    old = timezone.now() - timedelta(minutes=5)
    change(evaluation, state="running", started_at=old, heartbeat_at=old)

    assert "Nobody works on this" in read(world, viewer, evaluation)


def test_errors_are_linked_by_kind_and_the_list_follows(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    fields = {"accuracy": None, "effectiveness": None, "error": "down"}
    evaluation.results.filter(case__key="q3").update(error_kind="judge_timeout", **fields)
    evaluation.results.filter(case__key="q4").update(error_kind="budget", **fields)

    page = read(world, viewer, evaluation)
    address = world.url(f"evaluations/{evaluation.pk}/?error_kind=judge_timeout")
    listed = viewer.get(address).context["page"].object_list

    assert "?error_kind=judge_timeout#list" in page
    assert "the judge timed out" in page
    assert [result.case.key for result in listed] == ["q3"]


def test_a_budget_says_what_it_stopped_and_can_be_raised(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    change(evaluation, state="partial", budget={"calls": 20}, stopped_by="calls")
    page = read(world, developer, evaluation)

    developer.post(world.url(f"evaluations/{evaluation.pk}/resume/"), {"budget": "1", "max_calls": "50"})

    evaluation.refresh_from_db()
    assert "The budget of calls ended this evaluation" in page
    assert 'name="max_calls" min="1" value="20"' in page
    assert (evaluation.state, evaluation.budget) == ("queued", {"calls": 50})


def test_an_evaluation_that_had_no_budget_is_resumed_within_one(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    change(evaluation, state="partial")
    page = read(world, developer, evaluation)

    developer.post(world.url(f"evaluations/{evaluation.pk}/resume/"), {"budget": "1", "max_seconds": "60"})

    evaluation.refresh_from_db()
    # With and without.
    assert page.count(f"evaluations/{evaluation.pk}/resume/") == 2
    assert (evaluation.state, evaluation.budget) == ("queued", {"seconds": 60})


def test_a_judge_judges_again_within_a_budget(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    assert 'id="rejudge_max_calls"' in read(world, developer, evaluation)
    form = {"judge_ref": "main", "max_calls": "7"}
    developer.post(world.url(f"evaluations/{evaluation.pk}/rejudge/"), form)
    assert evaluation.rejudged.get().budget == {"calls": 7}


def test_answers_are_judged_again_as_an_evaluation_of_their_own(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    answer = developer.post(world.url(f"evaluations/{evaluation.pk}/rejudge/"), {"judge_ref": "main"})

    judged = evaluation.rejudged.get()
    assert answer.headers["Location"] == world.url(f"evaluations/{judged.pk}/")
    assert "The answers are those of" in read(world, developer, judged)
    assert f"#{judged.pk}" in read(world, developer, evaluation)


def test_flaky_cases_are_listed_where_there_are_repeats(
    world: World, viewer: Client, evaluation: Evaluation
) -> None:
    assert "Flaky case" not in read(world, viewer, evaluation)
    change(evaluation, repeats=2)
    for result in evaluation.results.all():
        result.pk, result.repeat = None, 1
        result.accuracy = result.effectiveness = 1
        result.save()

    page = read(world, viewer, evaluation)

    assert "10 flaky cases" in page
    assert "1 / 2" in page


def test_a_version_that_nobody_named_is_said_to_be_unknown(
    world: World, developer: Client, evaluation: Evaluation
) -> None:
    origin = {"format": "inspect", "file": "log<b>.eval", "digest": "x", "problems": ["sample <3> is broken"]}
    change(evaluation, commit="", judge_commit="", state="partial", origin=origin)

    page, listed = (
        read(world, developer, evaluation),
        developer.get(world.url("evaluations/")).content.decode(),
    )

    for shown in ("unknown version", "log&lt;b&gt;.eval", "sample &lt;3&gt; is broken"):
        assert shown in page
    assert "unknown version" in listed
    assert "evaluation_resume" not in page
    assert f"evaluations/{evaluation.pk}/resume/" not in page


@pytest.mark.parametrize("part", ["progress", "details", "results"])
def test_each_part_is_answered_by_itself_with_a_few_questions_to_the_database(
    world: World, viewer: Client, evaluation: Evaluation, part: str
) -> None:
    change(evaluation, state="running", heartbeat_at=timezone.now())

    with CaptureQueriesContext(connection) as asked:
        page = read(world, viewer, evaluation, part)

    assert f'id="{part}"' in page
    assert "<html" not in page
    assert len(asked) <= 14
