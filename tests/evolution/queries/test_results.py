from typing import Any

import pytest
from django.core.paginator import Page

from evolution.models import CaseResult, DatasetCase, Evaluation
from evolution.queries import results as queries
from evolution.queries.results import ResultFilter
from tests.evolution.measured import make_case, make_evaluation, make_harness, make_version, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    """Of q1 to q4 the agent knows q1 and q2; then q2 is made an error, and q3 ends at a limit."""
    made = make_evaluation(make_harness())
    run(made)
    results = CaseResult.objects.filter(evaluation=made)
    failed: dict[str, Any] = {
        "accuracy": None,
        "effectiveness": None,
        "error_kind": "judge_error",
        "error": "boom",
        "trajectory": {},
        "run_status": "",
    }
    results.filter(case__key="q2").update(**failed)
    struck = [{"name": "price", "fault": "timeout"}, {"name": "price", "fault": None}, {"name": "price"}]
    limited = {"status": "hook_limit", "tool_calls": [*struck, {"fault": "malformed"}, "odd"]}
    results.filter(case__key="q3").update(trajectory=limited, run_status="hook_limit", reply="ein GRUSS")
    return made


def keys(page: Page[CaseResult]) -> list[str]:
    return [result.case.key for result in page]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (ResultFilter(), ["q2", "q3", "q4", "q1"]),
        (ResultFilter(outcome="errors"), ["q2"]),
        (ResultFilter(outcome="failing"), ["q3", "q4"]),
        (ResultFilter(outcome="passed"), ["q1"]),
        (ResultFilter(status="hook_limit"), ["q3"]),
        (ResultFilter(status="ok"), ["q4", "q1"]),
        (ResultFilter(status=queries.NO_RUN), ["q2"]),
        (ResultFilter(category="any", text="gruss q3"), ["q3"]),
        (ResultFilter(text="boom"), ["q2"]),
        (ResultFilter(category="another"), []),
    ],
)
def test_results_are_filtered_the_worst_first(
    evaluation: Evaluation, wanted: ResultFilter, found: list[str]
) -> None:
    assert keys(queries.list_results(evaluation, wanted)) == found


def test_text_is_searched_in_the_request(evaluation: Evaluation) -> None:
    request = {"danmaku": [{"user": "u", "text": "几点发货"}]}
    DatasetCase.objects.filter(key="q4").update(request=request)
    assert keys(queries.list_results(evaluation, ResultFilter(text="发货"))) == ["q4"]


def test_facets_count_what_there_is(evaluation: Evaluation) -> None:
    facets = queries.result_facets(evaluation)
    assert (facets.total, facets.outcomes) == (4, {"errors": 1, "failing": 2, "passed": 1})
    assert facets.statuses == {"ok": 2, "hook_limit": 1, "none": 1}
    assert facets.categories == {"any": 4}


def test_a_result_has_its_place_within_the_filter(evaluation: Evaluation) -> None:
    by_key = {result.case.key: result for result in evaluation.results.select_related("case")}
    place = queries.find_place(by_key["q3"], ResultFilter())
    assert place == queries.Place(by_key["q2"].pk, by_key["q4"].pk, 2, 4)
    assert queries.find_place(by_key["q1"], ResultFilter(outcome="passed")) == queries.Place(None, None, 1, 1)
    assert queries.find_place(by_key["q1"], ResultFilter(outcome="errors")) is None


def test_many_results_are_paged() -> None:
    harness = make_harness()
    make_version(harness, [make_case(f"q{n}") for n in range(1, 61)])
    evaluation = make_evaluation(harness)
    version = harness.datasets.get().versions.get(number=1)
    CaseResult.objects.bulk_create(
        CaseResult(evaluation=evaluation, case=case, accuracy=1, effectiveness=1)
        for case in version.cases.all()
    )
    assert [len(queries.list_results(evaluation, ResultFilter(), page)) for page in (1, 2)] == [50, 10]


def test_calls_that_faults_struck_are_counted(evaluation: Evaluation) -> None:
    assert queries.count_struck(evaluation) == queries.Struck(calls=2, results=1)


def test_cases_with_faults_of_their_own_are_counted(evaluation: Evaluation) -> None:
    assert queries.count_cases_with_faults(evaluation) == 0
    DatasetCase.objects.filter(key="q4").update(faults=[{"kind": "timeout"}])
    assert queries.count_cases_with_faults(evaluation) == 1
