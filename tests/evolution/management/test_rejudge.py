import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from evolution.models import Evaluation
from tests.evolution.measured import make_evaluation, make_harness, run

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def measured() -> Evaluation:
    evaluation = make_evaluation(make_harness())
    run(evaluation)
    return evaluation


def rejudge(*arguments: str) -> dict[str, object]:
    out = StringIO()
    call_command("rejudge", *arguments, "--json", stdout=out)
    printed: dict[str, object] = json.loads(out.getvalue())
    return printed


def test_it_waits_for_the_new_scores_and_prints_them(measured: Evaluation) -> None:
    printed = rejudge(str(measured.pk), "--wait")
    assert (printed["status"], printed["results"], printed["reused"]) == ("finished", 4, False)
    made = Evaluation.objects.latest("pk")
    assert (made.answers_from, made.judge_model, made.results.count()) == (measured, "rehearsal-judge", 4)


def test_without_wait_it_is_queued(measured: Evaluation) -> None:
    printed = rejudge(str(measured.pk))
    made = Evaluation.objects.latest("pk")
    assert (printed["evaluation"], printed["status"], made.results.count()) == (made.pk, "queued", 0)


@pytest.mark.parametrize("arguments", [["0"], ["{pk}", "--judge-ref", "nowhere"], ["{pk}", "--judge-ref=-x"]])
def test_evaluations_and_judges_that_are_not_there_are_a_usage_error(
    measured: Evaluation, arguments: list[str]
) -> None:
    with pytest.raises(CommandError) as failed:
        rejudge(*(argument.format(pk=measured.pk) for argument in arguments))
    assert failed.value.returncode == 2


def test_the_judge_gets_a_budget(measured: Evaluation) -> None:
    Evaluation.objects.update(concurrency=1)
    out = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("rejudge", str(measured.pk), "--max-calls", "1", "--wait", "--json", stdout=out)
    printed = json.loads(out.getvalue())
    assert (ended.value.code, printed["stopped_by"], printed["calls"]) == (4, "calls", 1)
    # Two answers are right and two are wrong, and the same is judged once.
    assert (printed["results"], printed["errors_by_kind"]) == (4, {"budget": 2})


def test_errors_are_told_by_the_exit_code(measured: Evaluation) -> None:
    measured.results.filter(case__key="q1").update(error_kind="policy_error", trajectory={})
    with pytest.raises(SystemExit) as ended:
        rejudge(str(measured.pk), "--wait")
    assert ended.value.code == 4
