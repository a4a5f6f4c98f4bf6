from decimal import Decimal

import pytest
from pytest_django import Settings

from evolution.errors import LoopError
from evolution.loop.evaluation import resume_evaluation
from evolution.loop.rejudging import create_rejudgement
from evolution.models import Evaluation
from tests.evolution.measured import DEV, make_evaluation, make_harness, outage, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def partial(settings: Settings) -> Evaluation:
    """One that could not be judged, made while prices were in dollars."""
    settings.MODEL_CURRENCY = "USD"
    evaluation = make_evaluation(make_harness())
    run(evaluation, judge=outage())
    return evaluation


def test_an_evaluation_keeps_the_currency_that_it_was_made_in(
    partial: Evaluation, settings: Settings
) -> None:
    settings.MODEL_CURRENCY = "CNY"
    rejudged = create_rejudgement(DEV, partial, "main", judge_model="j")

    partial.refresh_from_db()
    assert (partial.currency, rejudged.currency) == ("USD", "CNY")


def test_amounts_are_not_gone_on_with_in_another_currency(partial: Evaluation, settings: Settings) -> None:
    partial.usage.create(role="policy", model="m", made=4, cost=Decimal("0.5"))
    settings.MODEL_CURRENCY = "CNY"

    with pytest.raises(LoopError, match="are in USD, and prices are in CNY now"):
        resume_evaluation(DEV, partial)

    partial.refresh_from_db()
    assert (partial.state, partial.results.count()) == ("partial", 4)


def test_without_amounts_it_goes_on_in_the_currency_of_now(partial: Evaluation, settings: Settings) -> None:
    settings.MODEL_CURRENCY = "CNY"

    resume_evaluation(DEV, partial)

    partial.refresh_from_db()
    assert (partial.state, partial.currency) == ("queued", "CNY")


def test_another_currency_is_measured_as_an_evaluation_of_its_own(
    partial: Evaluation, settings: Settings
) -> None:
    version = partial.dataset_version
    settings.MODEL_CURRENCY = "CNY"

    other = make_evaluation(partial.harness, version=version, resumes=True)

    assert (other.pk == partial.pk, other.currency) == (False, "CNY")
