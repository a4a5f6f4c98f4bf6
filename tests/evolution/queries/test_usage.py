from decimal import Decimal

import pytest
from pytest_django import DjangoAssertNumQueries

from evolution.loop.usage import RoleUse, add_usage
from evolution.queries.usage import Usage, usage_by_evaluation, usage_of
from tests.evolution.measured import make_evaluation, make_harness

pytestmark = pytest.mark.django_db


def test_usage_adds_up_by_role_in_the_order_of_a_case() -> None:
    evaluation = make_evaluation(make_harness())
    policy = RoleUse(
        "m", made=37, cached=900, failed=2, prompt_tokens=1000, completion_tokens=50, cost=Decimal("0.5")
    )
    judge = RoleUse("j", made=0, cached=27)
    for _ in range(2):
        add_usage(evaluation.pk, {"judge": judge, "policy": policy})
    usage = usage_of(evaluation)
    assert [(spend.role, spend.made, spend.asked) for spend in usage.roles] == [
        ("policy", 74, 1874),
        ("judge", 0, 54),
    ]
    total = usage.total
    assert (total.made, total.asked, total.failed, total.tokens) == (74, 1928, 4, 2100)
    assert total.cost == Decimal(1)


def test_cost_is_unknown_as_soon_as_one_call_has_no_price() -> None:
    evaluation = make_evaluation(make_harness())
    priced = RoleUse("m", made=1, cost=Decimal("0.5"))
    add_usage(evaluation.pk, {"policy": priced, "judge": RoleUse("j", made=1, unpriced=1)})
    total = usage_of(evaluation).total
    assert (total.cost, total.known_cost, total.unpriced) == (None, Decimal("0.5"), 1)


def test_usage_of_many_evaluations_is_one_question(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    harness = make_harness()
    used, unused = make_evaluation(harness), make_evaluation(harness, repeats=2)
    add_usage(used.pk, {"policy": RoleUse("m", made=3)})
    with django_assert_num_queries(1):
        found = usage_by_evaluation([used.pk, unused.pk])
    assert (found[used.pk].total.made, found[unused.pk]) == (3, Usage())
