import pytest
from pytest_django import Settings

from evolution.management.evaluation_report import format_counts, format_summary, summarise
from tests.evolution.measured import make_case, make_evaluation, make_harness, make_version, run

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("numbers", "said"),
    [((1, 1, 1), "1 result over 1 case, 1 error"), ((80, 40, 0), "80 results over 40 cases, 0 errors")],
)
def test_one_of_a_kind_is_said_as_one(numbers: tuple[int, int, int], said: str) -> None:
    assert format_counts(dict(zip(("results", "cases", "errors"), numbers, strict=True))) == said


def test_an_evaluation_is_said_to_stand_where_its_page_says(settings: Settings) -> None:
    harness = make_harness()
    evaluation = make_evaluation(harness, version=make_version(harness, [make_case("q1")]))
    run(evaluation)
    evaluation.usage.create(role="user", model="m", made=1, cost=2)
    evaluation.state, evaluation.stopped_by = "partial", "calls"
    settings.MODEL_CURRENCY = "CNY"

    summary = summarise(evaluation)

    assert (summary["status"], summary["currency"]) == ("partial", "USD")
    said = format_summary(summary | {"cost": 2.0})
    assert said.startswith(
        f"evaluation {evaluation.pk} is {evaluation.get_state_display()}, stopped by its budget of calls: "
    )
    assert "2.0000 USD" in said
