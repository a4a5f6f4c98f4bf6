from decimal import Decimal

import numpy as np
import pytest

from evolution.models import Evaluation
from evolution.queries.speed import list_latencies, measure_cost
from tests.evolution.measured import make_evaluation, make_harness, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    made = make_evaluation(make_harness(), repeats=5)
    run(made)
    return made


def test_percentiles_are_those_of_all_calls(evaluation: Evaluation) -> None:
    times = [[float(n), 3.0 * n] for n in range(20)]
    for result, calls in zip(evaluation.results.order_by("pk"), times, strict=True):
        result.call_ms, result.judge_call_ms, result.latency_ms = calls, calls[:1], sum(calls)
        result.save()

    found = dict(list_latencies(evaluation))

    for name, numbers in (("policy", np.ravel(times)), ("judge", np.ravel(times)[::2])):
        expected = np.percentile(numbers, [50, 95, 99])
        assert (found[name].p50, found[name].p95, found[name].p99) == pytest.approx(tuple(expected))
    # The one that took no time was not timed.
    assert found["case"].count == 19


def test_calls_that_nobody_saw_are_left_out(evaluation: Evaluation) -> None:
    evaluation.results.update(call_ms=[], judge_call_ms=[], latency_ms=0)

    assert list_latencies(evaluation) == []


def test_an_unknown_price_is_not_zero(evaluation: Evaluation) -> None:
    evaluation.results.update(cost=None, prompt_tokens=10, judge_prompt_tokens=1, completion_tokens=2)
    assert measure_cost(evaluation).per_case is None
    evaluation.results.filter(repeat=0).update(cost=Decimal("0.25"))

    cost = measure_cost(evaluation)

    assert (cost.per_case, cost.unpriced, cost.prompt_tokens) == (Decimal("0.25"), 16, 220)
