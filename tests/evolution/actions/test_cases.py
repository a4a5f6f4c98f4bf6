import pytest

from evolution.actions.cases import ignore_case, reopen_case, take_failures
from evolution.errors import LoopError
from evolution.models import Event, FailureCase, Harness
from evolution.states import CaseState
from tests.evolution.intake import make_failure
from tests.evolution.measured import DEV, make_evaluation, make_harness

pytestmark = pytest.mark.django_db


@pytest.fixture
def harness() -> Harness:
    return Harness.objects.create(name="shop", kind="agent", path="shop.git")


def test_failures_are_taken_when_the_evaluation_is_finished() -> None:
    with pytest.raises(LoopError, match="wait until"):
        take_failures(DEV, make_evaluation(make_harness()))


def test_a_case_is_put_aside_with_a_reason_and_taken_back(harness: Harness) -> None:
    case = make_failure(harness)
    for _ in range(2):
        ignore_case(DEV, case, "测试流量")
    case.refresh_from_db()
    assert (case.state, case.note) == (CaseState.IGNORED, "测试流量")
    assert Event.objects.filter(verb="failurecase.ignored").count() == 1
    reopen_case(DEV, case)
    assert FailureCase.objects.get().state == CaseState.OPEN
