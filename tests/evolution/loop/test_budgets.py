from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import Settings

from evolution.errors import LoopError
from evolution.loop.budgets import check_budget, life_signs
from evolution.models import Evaluation
from tests.evolution.measured import make_evaluation, make_harness

pytestmark = pytest.mark.django_db


def test_pauses_are_no_running_time() -> None:
    evaluation = make_evaluation(make_harness())
    start = timezone.now()
    for seconds in (0, 10, 15, 5000, 5010):
        own = Evaluation.objects.filter(pk=evaluation.pk)
        own.update(**life_signs(start + timedelta(seconds=seconds)))
    evaluation.refresh_from_db()
    # 10 + 5, then a breath of a dead worker, then 10.
    assert evaluation.running_seconds == pytest.approx(10 + 5 + 30 + 10)
    assert evaluation.heartbeat_at == start + timedelta(seconds=5010)


def test_a_budget_is_stored_without_the_parts_that_limit_nothing(settings: Settings) -> None:
    settings.MODEL_PRICES = {"m": {"input": 1, "output": 1}}
    budget = {"calls": 5, "tokens": None, "money": Decimal("1.5"), "seconds": 2.5}
    assert check_budget(budget, ["m", "rehearsal-judge", ""]) == {"calls": 5, "money": 1.5, "seconds": 2.5}
    assert check_budget(None, ["m"]) == {}


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"calls": 0}, "above 0, and calls of this one is 0"),
        ({"calls": True}, "calls of this one is True"),
        ({"calls": 2.5}, "a budget of calls is a whole number"),
        ({"seconds": float("nan")}, "seconds of this one is nan"),
        ({"tokens": "many"}, "tokens of this one is many"),
        ({"euros": 5}, "no part euros"),
        ({"money": 5}, "the price of m, n is unknown"),
    ],
)
def test_a_budget_that_cannot_be_kept_is_refused(budget: dict[str, Any], said: str) -> None:
    with pytest.raises(LoopError, match=said):
        check_budget(budget, ["m", "n", "rehearsal-judge", "m"])
