from datetime import timedelta

import pytest
from django.utils import timezone

from evolution.models import Evaluation, LimitShare, SharedLimit
from evolution.queries.progress import count_under_way, measure_progress, stands_still_since
from tests.evolution.measured import make_evaluation, make_harness, run

pytestmark = pytest.mark.django_db
NOW = timezone.now()


@pytest.fixture
def evaluation() -> Evaluation:
    made = make_evaluation(make_harness(), repeats=5)
    run(made)
    return made


def set_running(evaluation: Evaluation, seconds_ago: float) -> Evaluation:
    began = timezone.now() - timedelta(seconds=seconds_ago)
    Evaluation.objects.filter(pk=evaluation.pk).update(state="running", started_at=began, heartbeat_at=began)
    evaluation.refresh_from_db()
    return evaluation


def test_errors_are_counted_by_kind_the_most_frequent_first(evaluation: Evaluation) -> None:
    evaluation.results.filter(repeat=0).update(error_kind="timeout")
    evaluation.results.filter(repeat=1, case__key="q1").update(error_kind="judge_error")

    progress = measure_progress(evaluation)

    assert list(progress.errors_by_kind.items()) == [("timeout", 4), ("judge_error", 1)]
    assert (progress.done, progress.errors, progress.percent) == (20, 5, 100)


def test_the_rate_is_of_the_last_half_minute(evaluation: Evaluation) -> None:
    set_running(evaluation, 600)
    evaluation.results.filter(repeat__gte=3).delete()
    evaluation.results.filter(repeat=0).update(created_at=NOW - timedelta(seconds=90))

    progress = measure_progress(evaluation)

    # eight of late, in 30 seconds, and eight to go
    assert progress.per_second == pytest.approx(8 / 30)
    assert progress.seconds_left == pytest.approx(30)


def test_the_pause_before_a_resumption_is_not_in_the_rate(evaluation: Evaluation) -> None:
    set_running(evaluation, 600)
    Evaluation.objects.filter(pk=evaluation.pk).update(queued_at=timezone.now() - timedelta(seconds=10))
    evaluation.refresh_from_db()
    evaluation.results.filter(repeat__gte=3).delete()
    # From before the pause, though not long ago.
    evaluation.results.filter(repeat__lte=1).update(created_at=timezone.now() - timedelta(seconds=20))

    progress = measure_progress(evaluation)

    # four in ten seconds, and eight to go
    assert progress.per_second == pytest.approx(0.4, rel=0.3)
    assert progress.seconds_left == pytest.approx(20, rel=0.4)


def test_what_a_budget_cut_off_is_not_measured(evaluation: Evaluation) -> None:
    evaluation.results.filter(repeat=0).update(error_kind="budget", accuracy=None, effectiveness=None)

    progress = measure_progress(evaluation)

    assert (progress.done, progress.measured, progress.unmeasured) == (20, 16, 4)
    assert progress.measured_percent == 80


def test_an_evaluation_that_has_ended_has_no_rate(evaluation: Evaluation) -> None:
    assert measure_progress(evaluation).per_second is None


def test_a_running_evaluation_without_a_sign_of_life_stands_still(evaluation: Evaluation) -> None:
    assert stands_still_since(set_running(evaluation, 5), timezone.now()) is None

    set_running(evaluation, 300)

    assert stands_still_since(evaluation, timezone.now()) == evaluation.heartbeat_at


def test_what_has_ended_does_not_stand_still(evaluation: Evaluation) -> None:
    assert stands_still_since(evaluation, NOW + timedelta(days=9)) is None


def test_what_all_processes_have_under_way_is_added_up(evaluation: Evaluation) -> None:
    for name, taken in ((f"evaluation:{evaluation.pk}:cases", 3), (f"evaluation:{evaluation.pk}:calls", 5)):
        limit = SharedLimit.objects.create(name=name)
        for holder in ("a", "b"):
            LimitShare.objects.create(
                limit=limit, holder=holder, taken=taken, lease_until=timezone.now() + timedelta(hours=1)
            )

    under_way = count_under_way(evaluation)

    assert (under_way.cases, under_way.calls) == (6, 10)
