from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evolution.loop.evaluation import average_scores, cancel_evaluation, resume_evaluation
from evolution.loop.figures import SETTLED, Figures, figures_of
from evolution.models import Evaluation
from tests.evolution.measured import DEV, make_evaluation, make_harness, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    made = make_evaluation(make_harness(), repeats=5)
    run(made)
    return made


def read(evaluation: Evaluation) -> Figures:
    """As a page does that loads it."""
    return figures_of([Evaluation.objects.get(pk=evaluation.pk)])[evaluation.pk]


def settle(evaluation: Evaluation) -> None:
    """As if it had ended long ago."""
    ended = timezone.now() - SETTLED - timedelta(seconds=1)
    Evaluation.objects.filter(pk=evaluation.pk).update(finished_at=ended)


def test_percentiles_are_those_of_all_calls(evaluation: Evaluation) -> None:
    times = [[float(n), 3.0 * n] for n in range(20)]
    for result, calls in zip(evaluation.results.order_by("pk"), times, strict=True):
        result.call_ms, result.judge_call_ms, result.latency_ms = calls, calls[:1], sum(calls)
        result.save()

    found = read(evaluation).latencies

    for name, numbers in (("policy", np.ravel(times)), ("judge", np.ravel(times)[::2])):
        expected = np.percentile(numbers, [50, 95, 99])
        assert (found[name].p50, found[name].p95, found[name].p99) == pytest.approx(tuple(expected))
    # The one that took no time was not timed.
    assert found["case"].count == 19


def test_calls_that_nobody_saw_are_left_out(evaluation: Evaluation) -> None:
    evaluation.results.update(call_ms=[], judge_call_ms=[], latency_ms=0)

    assert read(evaluation).latencies == {}


def test_an_unknown_price_is_not_zero(evaluation: Evaluation) -> None:
    evaluation.results.update(cost=None, prompt_tokens=10, judge_prompt_tokens=1, completion_tokens=2)
    assert read(evaluation).cost.per_case is None
    evaluation.results.filter(repeat=0).update(cost=Decimal("0.25"))

    cost = read(evaluation).cost

    assert (cost.per_case, cost.unpriced, cost.prompt_tokens) == (Decimal("0.25"), 16, 220)


def test_what_has_ended_is_added_up_once(evaluation: Evaluation) -> None:
    evaluation.results.filter(repeat=0).update(cost=Decimal("0.123"), latency_ms=3)
    evaluation.results.filter(repeat=1).update(accuracy=None, effectiveness=None, error_kind="timeout")
    settle(evaluation)
    added_up = read(evaluation)

    with CaptureQueriesContext(connection) as queries:
        kept = read(evaluation)

    assert not any("evolution_caseresult" in query["sql"] for query in queries)
    assert (kept, list(kept.latencies)) == (added_up, list(added_up.latencies))
    assert (kept.cases, kept.results, kept.errors, kept.cost.money) == (4, 20, 4, Decimal("0.492"))


def test_averages_are_the_same_with_kept_figures(evaluation: Evaluation) -> None:
    evaluation.dataset_version.cases.filter(key="q4").update(split="guard")
    settle(evaluation)
    before = average_scores(evaluation)
    read(evaluation)
    with CaptureQueriesContext(connection) as queries:
        after = average_scores(Evaluation.objects.get(pk=evaluation.pk))
    assert len(queries) == 1
    assert (after.accuracy, after.effectiveness) == pytest.approx((before.accuracy, before.effectiveness))
    assert (after.cases, after.results, after.errors) == (before.cases, before.results, before.errors)


def test_figures_of_what_a_worker_may_still_store_are_not_kept(evaluation: Evaluation) -> None:
    assert read(evaluation).results == 20
    evaluation.results.filter(repeat=4).delete()
    assert read(evaluation).results == 16


def test_kept_figures_are_not_those_of_a_resumed_evaluation() -> None:
    evaluation = make_evaluation(make_harness())
    cancel_evaluation(DEV, evaluation)
    settle(evaluation)
    assert read(evaluation).results == 0
    resume_evaluation(DEV, Evaluation.objects.get(pk=evaluation.pk))
    run(Evaluation.objects.get(pk=evaluation.pk))
    assert read(evaluation).results == 4
    settle(evaluation)
    assert read(evaluation).results == 4


def test_workers_from_before_an_upgrade_can_still_insert(evaluation: Evaluation) -> None:
    result = evaluation.results.order_by("pk")[0]
    old = (
        "evaluation_id, case_id, repeat, accuracy, effectiveness, reasons, findings, reply, trajectory, run_status,"
        " judge_trajectory, prompt_tokens, completion_tokens, latency_ms, error_kind, error, created_at"
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO evolution_caseresult ({old}) SELECT {old.replace('repeat', '99')}"  # noqa: S608  our own
            " FROM evolution_caseresult WHERE id = %s",
            [result.pk],
        )
    stored = evaluation.results.get(repeat=99)
    assert (stored.attempts, stored.calls, stored.call_ms, stored.cached_tokens) == (1, 0, [], 0)
