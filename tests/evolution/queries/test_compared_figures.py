from decimal import Decimal

import pytest
from pytest_django import Settings

from evolution.models import Evaluation
from evolution.queries import compared_figures
from evolution.queries.compared_figures import compare_figures
from tests.evolution.measured import (
    make_evaluation,
    make_harness,
    make_measured_step,
    make_version,
    run,
    teach,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def pair() -> tuple[Evaluation, Evaluation]:
    """One of four cases that knows two of them, and the same again."""
    harness = make_harness()
    version = make_version(harness)
    made = [make_evaluation(harness, version=version, is_fresh=True) for _ in range(2)]
    for evaluation in made:
        run(evaluation)
    return made[0], made[1]


def test_scores_are_those_of_the_verdict() -> None:
    step = make_measured_step(teach(*range(1, 21)))
    assert step.base_evaluation is not None
    assert step.candidate_evaluation is not None
    assert step.verdict is not None

    compared = compare_figures(step.base_evaluation, step.candidate_evaluation)

    for row in compared.metrics:
        stored = step.verdict.figures["metrics"][row.name]
        assert row.compared is not None
        assert {name: getattr(row.compared, name) for name in stored} == stored
        assert (row.base, row.candidate) == (stored["base"], stored["candidate"])


def test_what_has_not_ended_is_not_compared(pair: tuple[Evaluation, Evaluation]) -> None:
    pair[1].state = "running"

    rows = compare_figures(*pair).metrics

    assert [(row.base, row.candidate, row.compared) for row in rows] == [(0.5, 0.5, None), (0.75, 0.75, None)]


def test_statistics_of_very_many_results_are_made_when_asked_for(
    pair: tuple[Evaluation, Evaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compared_figures, "MOST_AT_ONCE", 3)

    unasked, asked = compare_figures(*pair), compare_figures(*pair, is_asked=True)

    assert (unasked.is_left_out, unasked.metrics[0].compared) == (True, None)
    assert (asked.is_left_out, asked.metrics[0].compared is None) == (False, False)


def test_results_that_changed_are_compared_anew(pair: tuple[Evaluation, Evaluation]) -> None:
    first = compare_figures(*pair).metrics[0].candidate
    last = pair[1].results.get(case__key="q1")
    last.accuracy, last.effectiveness, last.error_kind = None, None, "judge_error"
    last.save()

    assert first == 0.5
    assert compare_figures(*pair).metrics[0].candidate == pytest.approx(1 / 3)


def test_cost_and_latency_are_compared_where_both_are_known(pair: tuple[Evaluation, Evaluation]) -> None:
    pair[0].results.update(cost=Decimal("0.5"), latency_ms=100)
    assert compare_figures(*pair).cost_difference is None

    pair[1].results.update(cost=Decimal("0.75"), latency_ms=350)

    compared = compare_figures(*pair)
    assert (compared.cost_difference, compared.p95_difference) == (Decimal("0.25"), 250)


def test_amounts_in_two_currencies_have_no_difference(
    pair: tuple[Evaluation, Evaluation], settings: Settings
) -> None:
    for evaluation, currency in zip(pair, ("USD", "CNY"), strict=True):
        evaluation.results.update(cost=Decimal("0.5"))
        Evaluation.objects.filter(pk=evaluation.pk).update(currency=currency)

    compared = compare_figures(*pair)

    assert (compared.base.cost.currency, compared.candidate.cost.currency) == ("USD", "CNY")
    assert compared.cost_difference is None
