from decimal import Decimal

from evolution.models import Evaluation
from evolution.queries.budgets import list_budget
from evolution.queries.usage import Spend


def test_each_part_says_what_is_used_of_it() -> None:
    budget = {"calls": 10, "tokens": 100, "money": 0.5, "seconds": 60}
    evaluation = Evaluation(budget=budget, running_seconds=30)
    spent = Spend(
        made=4, cached=9, failed=1, prompt_tokens=90, completion_tokens=20, known_cost=Decimal("0.25")
    )

    uses = {use.part: (use.used, use.percent) for use in list_budget(evaluation, spent)}

    assert uses == {"calls": (5, 50), "tokens": (110, 110), "money": (0.25, 50), "seconds": (30, 50)}


def test_parts_without_a_limit_are_not_listed() -> None:
    assert list_budget(Evaluation(budget={"calls": None}), Spend()) == []
