from dataclasses import replace

import pytest
from pytest_django import Settings

from evolution.errors import LoopError
from evolution.loop import evaluation as loop
from evolution.loop.pairs import stored_pairs
from evolution.loop.promotion import measured_versions
from evolution.loop.rejudging import create_rejudgement
from evolution.models import DatasetVersion, Evaluation, Event, Harness
from evolution.queries.releases import live_evaluation
from evolution.states import EvaluationState, ShardState
from harness_repo.runtime.faults import parse_fault
from tests.evolution.conversing import conversations
from tests.evolution.measured import (
    DEV,
    judge_reply,
    knows,
    make_case,
    make_evaluation,
    make_harness,
    make_version,
    outage,
    run,
)

pytestmark = pytest.mark.django_db


def test_every_case_and_repeat_is_scored_once() -> None:
    evaluation = make_evaluation(make_harness(), repeats=3)
    run(evaluation)
    assert evaluation.state == EvaluationState.FINISHED
    assert stored_pairs(evaluation) == {(c, r) for r in range(3) for c in _case_ids(evaluation)}
    assert evaluation.results.count() == evaluation.total == 12


def test_averages_leave_the_guard_out() -> None:
    harness = make_harness()
    make_version(harness, [make_case("q1"), make_case("q3"), make_case("g", split="guard")])
    evaluation = _evaluate_newest(harness)
    averages = loop.average_scores(evaluation)
    assert (averages.accuracy, averages.effectiveness) == (50, 75)
    assert (averages.cases, averages.results, averages.errors) == (3, 3, 0)


def test_sealed_and_calibration_cases_are_not_run() -> None:
    harness = make_harness()
    make_version(
        harness, [make_case("q1"), make_case("s", split="sealed"), make_case("c", split="calibration")]
    )
    assert _evaluate_newest(harness).results.get().case.key == "q1"


def test_finished_identical_evaluation_is_reused() -> None:
    harness = make_harness()
    first = make_evaluation(harness)
    assert make_evaluation(harness) == first
    run(first)
    assert make_evaluation(harness) == first
    assert make_evaluation(harness, repeats=2) != first
    assert Event.objects.filter(verb="evaluation.created").count() == 2


def test_outage_of_the_policy_is_an_error_and_no_score() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation, answer=outage())
    assert evaluation.state == EvaluationState.PARTIAL
    assert set(evaluation.results.values_list("error_kind", "accuracy")) == {("policy_error", None)}
    assert loop.average_scores(evaluation).accuracy is None


def test_resume_makes_only_the_pairs_without_a_score() -> None:
    evaluation = make_evaluation(make_harness())
    run(
        evaluation,
        answer=lambda system, user: outage()(system, user) if user == "q2" else knows(system, user),
    )
    kept = set(evaluation.results.filter(error_kind="").values_list("pk", flat=True))
    assert loop.resume_evaluation(DEV, evaluation) == 1
    assert run(evaluation).asked == ["q2"]
    assert evaluation.state == EvaluationState.FINISHED
    assert kept < set(evaluation.results.values_list("pk", flat=True))


def test_judge_that_breaks_its_schema_is_an_error() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation, judge=lambda system, user: judge_reply(system, user).replace("0.5", "0.7"))
    assert evaluation.results.filter(error_kind="judge_output").count() == 2
    assert evaluation.results.filter(error_kind="").count() == 2


def test_outage_of_the_judge_keeps_the_reply() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation, judge=outage())
    assert set(evaluation.results.values_list("error_kind", "reply")) == {
        ("judge_error", "right"),
        ("judge_error", "wrong"),
    }


def test_text_that_the_database_refuses_is_stored_cleaned() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation, answer=lambda _system, _user: "a\0b\ud800c")
    assert set(evaluation.results.values_list("reply", flat=True)) == {"a\ufffdb\ufffdc"}


def test_cancelled_evaluation_keeps_what_is_measured_and_can_be_resumed() -> None:
    evaluation = make_evaluation(make_harness())
    loop.cancel_evaluation(DEV, evaluation)
    assert run(evaluation).asked == []
    assert evaluation.state == EvaluationState.CANCELLED
    assert loop.resume_evaluation(DEV, evaluation) == 4
    run(evaluation)
    assert evaluation.state == EvaluationState.FINISHED


def test_judging_anew_is_resumed_with_money_by_the_price_of_its_judge_alone(settings: Settings) -> None:
    settings.MODEL_PRICES = {"j": {"input": 1, "output": 1}}
    source = make_evaluation(make_harness())
    run(source)
    judged = create_rejudgement(DEV, source, "main", judge_model="j")
    loop.cancel_evaluation(DEV, judged)
    loop.resume_evaluation(DEV, judged, {"money": 2})
    judged.refresh_from_db()
    assert judged.budget == {"money": 2}


def test_first_cases_stand_for_all_and_are_the_same_for_both_sides() -> None:
    harness = make_harness()
    # Named by category, as data sets often are.
    cases = [make_case(f"{name}-{number:02}") for name in ("basket", "refund") for number in range(32)]
    version = make_version(harness, cases)
    dealt = [
        list(make_evaluation(harness, version=version, repeats=times).shards.values_list("pairs", flat=True))
        for times in (1, 2)
    ]
    assert dealt[1][:8] == dealt[0]
    first = [pair[0] for shard in dealt[0][:4] for pair in shard]
    refunds = version.cases.filter(pk__in=first, key__startswith="refund").count()
    assert 8 < refunds < 24


def test_more_trials_than_anybody_means_are_refused() -> None:
    with pytest.raises(LoopError, match="from 1 to 100"):
        make_evaluation(make_harness(), repeats=101)


def test_finishing_is_idempotent_and_waits_for_every_shard() -> None:
    evaluation = make_evaluation(make_harness())
    assert not loop.finish_evaluation(evaluation)
    run(evaluation)
    assert loop.finish_evaluation(evaluation)
    assert Event.objects.filter(verb="evaluation.finished").count() == 1


def test_shard_that_lost_a_result_is_queued_again() -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation)
    evaluation.results.filter(case__key="q3").delete()
    type(evaluation).objects.update(state=EvaluationState.RUNNING)
    assert not loop.finish_evaluation(evaluation)
    assert evaluation.shards.get().state == ShardState.QUEUED


def test_harness_without_judge_or_cases_is_refused() -> None:
    harness = make_harness()
    with pytest.raises(LoopError, match="no dataset"):
        loop.newest_version(harness)
    version = make_version(harness)
    with pytest.raises(LoopError, match="nothing to evaluate"):
        loop.create_evaluation(DEV, harness, "main", version, model="m", judge_model="j", splits=["sealed"])
    harness.judge = None
    with pytest.raises(LoopError, match="no judge"):
        loop.create_evaluation(DEV, harness, "main", version, model="m", judge_model="j")


def test_faults_are_part_of_what_is_measured() -> None:
    harness = make_harness()
    plain = make_evaluation(harness)
    faults = [parse_fault("timeout:price:0.5")]
    with pytest.raises(LoopError, match="no such tool that a fault could strike: price"):
        make_evaluation(harness, faults=faults)
    faults = [parse_fault("timeout:*:0.5")]
    under_faults = make_evaluation(harness, faults=faults)
    assert under_faults != plain
    assert make_evaluation(harness, faults=faults) == under_faults
    assert under_faults.faults == [{"kind": "timeout", "tool": "*", "rate": 0.5}]
    assert loop.describe_faults(under_faults.faults) == "timeout:*:0.5"


def test_evaluation_under_faults_is_not_what_a_version_is_judged_by() -> None:
    harness = make_harness()
    under_faults = make_evaluation(harness, faults=[parse_fault("timeout")])
    run(under_faults)
    assert live_evaluation(harness) is None
    plain = make_evaluation(harness)
    run(plain)
    assert live_evaluation(harness) == plain
    assert measured_versions(harness) == [(plain, None)]


def test_conversations_need_a_user_and_are_bound_to_it() -> None:
    harness = make_harness()
    version = make_version(harness, [make_case("q1"), *conversations()])
    with pytest.raises(LoopError, match="no model plays the user"):
        loop.create_evaluation(DEV, harness, "main", version, model="m", judge_model="j")
    assert _create_with_user(harness, version) == "u"
    assert _create_with_user(harness, make_version(harness)) == ""


def _create_with_user(harness: Harness, version: DatasetVersion) -> str:
    evaluation = loop.create_evaluation(
        DEV, harness, "main", version, model="m", judge_model="j", user_model="u"
    )
    return evaluation.user_model


def _evaluate_newest(harness: Harness) -> Evaluation:
    version = loop.newest_version(harness)
    evaluation = loop.create_evaluation(DEV, harness, "main", version, model="m", judge_model="j")
    run(evaluation)
    return evaluation


def _case_ids(evaluation: Evaluation) -> list[int]:
    return list(evaluation.dataset_version.cases.values_list("pk", flat=True))


def test_faults_of_cases_that_no_tool_of_the_version_meets_are_named() -> None:
    harness = make_harness()
    case = replace(make_case("q1"), faults=[{"kind": "timeout", "tool": "price"}, {"kind": "timeout"}])
    version = make_version(harness, [case])
    evaluation = loop.create_evaluation(DEV, harness, "main", version, model="m", judge_model="j")
    assert loop.faults_that_never_strike(evaluation) == ["price"]
