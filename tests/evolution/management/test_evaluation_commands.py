"""`resume_evaluation` and `cancel_evaluation`, and what all that work on evaluations say while something is away."""

import json
from collections.abc import Callable
from io import StringIO
from typing import Any
from unittest import mock

import pytest
from celery import Celery
from django.core.management import CommandError, call_command
from django.db import OperationalError

from evolution.loop import engine
from evolution.loop.evaluation import cancel_evaluation
from evolution.management import infrastructure
from evolution.management.commands import load_demonstration
from evolution.models import Evaluation
from evolution.states import EvaluationState
from tests.evolution.measured import DEV, make_evaluation, make_harness, outage, run

pytestmark = pytest.mark.django_db


def run_command(name: str, *arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(name, *arguments, "--json", stdout=out, stderr=StringIO())
    printed: dict[str, Any] = json.loads(out.getvalue())
    return printed


@pytest.fixture
def partial() -> Evaluation:
    """One that could not be judged."""
    evaluation = make_evaluation(make_harness())
    run(evaluation, judge=outage())
    return evaluation


def bind_to_rehearsal() -> None:
    """The models that commands find here are not those of the tests."""
    Evaluation.objects.update(model="rehearsal-policy", judge_model="rehearsal-judge")


def test_resume_queues_what_has_no_score(partial: Evaluation) -> None:
    partial.results.filter(case__key="q1").update(error_kind="", accuracy=1, effectiveness=1)
    printed = run_command("resume_evaluation", str(partial.pk))
    assert (printed["evaluation"], printed["status"], printed["results"]) == (partial.pk, "queued", 1)


def test_resume_waits_until_everything_has_a_score(partial: Evaluation) -> None:
    bind_to_rehearsal()
    printed = run_command("resume_evaluation", str(partial.pk), "--wait")
    assert (printed["status"], printed["results"], printed["errors"]) == ("finished", 4, 0)


def test_resume_gives_an_evaluation_a_budget_that_counts_from_its_beginning(partial: Evaluation) -> None:
    options = ["--max-calls", "50", "--max-tokens", "4000", "--max-money", "0.5", "--max-seconds", "60"]
    with mock.patch("evolution.loop.budgets.price_of", return_value=1):
        run_command("resume_evaluation", str(partial.pk), *options)
    partial.refresh_from_db()
    assert partial.budget == {"calls": 50, "tokens": 4000, "money": 0.5, "seconds": 60}


def test_resume_keeps_the_budget_when_none_is_given(partial: Evaluation) -> None:
    Evaluation.objects.update(budget={"calls": 50})
    run_command("resume_evaluation", str(partial.pk))
    partial.refresh_from_db()
    assert partial.budget == {"calls": 50}


def test_resume_with_wait_works_on_what_is_under_way_too() -> None:
    evaluation = make_evaluation(make_harness())
    bind_to_rehearsal()
    assert run_command("resume_evaluation", str(evaluation.pk), "--wait")["status"] == "finished"


def test_cancel_ends_it_and_keeps_what_is_measured(partial: Evaluation) -> None:
    run_command("resume_evaluation", str(partial.pk))
    printed = run_command("cancel_evaluation", str(partial.pk))
    assert (printed["evaluation"], printed["status"]) == (partial.pk, "cancelled")
    partial.refresh_from_db()
    assert partial.state == EvaluationState.CANCELLED


def finish(evaluation: Evaluation) -> None:
    Evaluation.objects.filter(pk=evaluation.pk).update(state=EvaluationState.FINISHED)


@pytest.mark.parametrize("command", ["resume_evaluation", "cancel_evaluation"])
def test_what_can_not_be_resumed_or_cancelled_is_a_usage_error(partial: Evaluation, command: str) -> None:
    finish(partial)
    for pk in ("0", str(partial.pk)):
        with pytest.raises(CommandError) as refused:
            run_command(command, pk)
        assert refused.value.returncode == 2


@pytest.mark.parametrize("command", ["resume_evaluation", "rejudge"])
def test_without_a_broker_nothing_is_left_to_the_workers(partial: Evaluation, command: str) -> None:
    with (
        mock.patch.object(
            infrastructure, "current_app", Celery(broker="redis://127.0.0.1:1/0", set_as_current=False)
        ),
        pytest.raises(CommandError, match="the broker can't be reached") as refused,
    ):
        run_command(command, str(partial.pk))
    assert refused.value.returncode == 4
    assert [one.state for one in Evaluation.objects.all()] == [EvaluationState.PARTIAL]


def lose_the_database(*_: object) -> None:
    raise OperationalError("the server has gone\nand more")


def ask_to_evaluate(evaluation: Evaluation) -> None:
    cancel_evaluation(DEV, evaluation)
    run_command("evaluate", "--harness", "shop", "--wait")


def ask_to_resume(evaluation: Evaluation) -> None:
    run_command("resume_evaluation", str(evaluation.pk), "--wait")


def ask_to_judge_anew(evaluation: Evaluation) -> None:
    run_command("rejudge", str(evaluation.pk), "--wait", "--fresh")


@pytest.mark.parametrize("ask", [ask_to_evaluate, ask_to_resume, ask_to_judge_anew])
def test_database_that_goes_away_and_stays_away_ends_the_command_with_4(
    partial: Evaluation, monkeypatch: pytest.MonkeyPatch, ask: Callable[[Evaluation], None]
) -> None:
    bind_to_rehearsal()
    partial.refresh_from_db()
    monkeypatch.setattr(engine, "store_batch", lose_the_database)
    with pytest.raises(CommandError) as ended:
        ask(partial)
    assert str(ended.value) == "the database can't be reached: the server has gone"
    assert ended.value.returncode == 4


@pytest.mark.parametrize(
    ("command", "patched"),
    [
        ("load_demonstration", load_demonstration.__name__ + ".ensure_starter"),
        ("demo", "evolution.management.commands.demo.make_fresh_harness"),
    ],
)
def test_demonstration_says_that_the_database_is_away(command: str, patched: str) -> None:
    with mock.patch(patched, side_effect=lose_the_database), pytest.raises(CommandError) as ended:
        call_command(command, stdout=StringIO(), stderr=StringIO())
    assert ended.value.returncode == 4
